// Package dump reads a cluster from what kubectl prints: `kubectl get nodes,pods -A -o json` or `-o yaml`, or from a
// recording of what an engine was given.
package dump

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"loadline.dev/shim/internal/unwrap"
)

// Bounds on a dump. An API server stores objects of at most about 1.5 MiB; 600,000 pods are some 3 GiB of JSON.
const (
	// MaxBytes is the most that is read of one dump.
	MaxBytes = 16 << 30
	// MaxObjectBytes bounds one object of a JSON dump, as objects are read one at a time.
	MaxObjectBytes = 16 << 20
	// MaxDocumentBytes bounds one document of a YAML dump, as documents are read as a whole: a parsed YAML
	// document takes many times the memory of its text.
	MaxDocumentBytes = 64 << 20
	// maxYAMLParts bounds the lines, lists and mappings of one document of a YAML dump, each of which may become a node of
	// the parsed document: 18 million of them took 2.6 GiB. The block style that kubectl prints has 3.3 to 3.8 million in
	// MaxDocumentBytes, by the cases of test/field; lists and mappings in one line have more.
	maxYAMLParts = 4 << 20
)

// Handler gets the objects of a dump one by one, in the order of the dump. It owns what it gets. The first error
// ends the reading.
type Handler struct {
	Node func(*v1.Node) error
	Pod  func(*v1.Pod) error
	// Object gets what decides beside nodes and pods where a pod can go: *v1.Namespace, *v1.PersistentVolume,
	// *v1.PersistentVolumeClaim, *storagev1.StorageClass, CSINode and CSIDriver, and *resourcev1.DeviceClass. nil: these
	// kinds play no part.
	Object func(any) error
	// PlannerObject gets what planners look up: *policyv1.PodDisruptionBudget, *v1.Service, *v1.ReplicationController,
	// *batchv1.Job, *appsv1.ReplicaSet, StatefulSet, DaemonSet and Deployment. nil: these kinds play no part.
	PlannerObject func(any) error
	// Broken gets each object of the kinds above that cannot be read, and the others are still read. nil: the first
	// such object ends the reading.
	Broken func(Broken)
	// Manifests says that objects are read as they are submitted: a pod may have a generateName in place of a name, and
	// Pod also gets the pods that a workload makes, one of each, with its name.
	Manifests bool
	// Loop chooses a loop of a recording, from 1; 0: the last one.
	Loop int
	// Note gets a sentence about what was left out of a dump that was read. nil: nobody hears of it.
	Note func(string)
	// At gets the time of the loop of a recording, before its objects. nil: nobody asks.
	At func(time.Time)
	// SpreadSelector gets, before a pod of a recording, what default spread constraints count it by, a plain protobuf
	// meta.v1.LabelSelector: a recording has no services. nil: no such constraints are known.
	SpreadSelector func(pod types.NamespacedName, selector []byte)
}

// Broken is an object that cannot be read, with what could be.
type Broken struct {
	Kind, Namespace, Name string
	UID                   types.UID
	// NodeName is where a pod is.
	NodeName string
	// Object is the *v1.Node or *v1.Pod without the fields that cannot be read, which unknownfields notes on it, and
	// with an amount of -1 in place of each that is none. nil: nothing but the above could be read.
	Object metav1.Object
	Err    error
}

// Counts are the numbers of objects in a dump.
type Counts struct {
	Nodes, Pods int
	// Objects counts those of the kinds that Handler.Object and Handler.PlannerObject get, by kind.
	Objects map[string]int
	// Loop is the number of the loop of a recording that was read, from 1; 0: none was.
	Loop int
	// Minor is the release of Kubernetes by which pods that are being resized count in a recording; 0: nobody says.
	Minor int32
	// Ignored counts objects of kinds that play no part, by kind.
	Ignored map[string]int
}

// Read reads a dump: one or more v1 Lists or single objects, as JSON or as YAML documents, in UTF-8 or UTF-16, gzipped
// or not. A recording of what an engine was given is read as the cluster of one of its loops. Lines of --- may divide
// objects, and harmless lines of kubectl's standard error between them are left out. Objects of a kind that is not
// known are counted and left out. Errors name the dump, the position of the object (from 0), the object and the field,
// unless Handler.Broken takes what is wrong with one object alone. JSON takes memory for one object at a time, YAML for
// one document, and a recording for the cluster.
func Read(r io.Reader, name string, handler Handler) (Counts, error) {
	d := newReader(handler)
	if err := d.readAs(r, name); err != nil {
		return Counts{}, err
	}
	return d.counts, nil
}

func newReader(handler Handler) *reader {
	return &reader{handler: handler, seen: map[string]position{},
		counts: Counts{Objects: map[string]int{}, Ignored: map[string]int{}}}
}

// readAs reads one more dump, of this name.
func (d *reader) readAs(r io.Reader, name string) error {
	d.name = name
	err := d.readWrapped(r)
	if d.handler.Manifests && errors.Is(err, errNotADump) {
		err = errors.New(strings.Replace(err.Error(), errNotADump.Error(), notAManifest, 1))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w; it is cut short: copy it as a whole, or make it again", err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, printable(err))
	}
	return nil
}

func (d *reader) readWrapped(r io.Reader) error {
	packed := bufio.NewReader(r)
	if isRecording(packed) {
		return d.readRecording(packed)
	}
	if err := checkFormat(packed); err != nil {
		return err
	}
	text, err := unwrap.Text(packed)
	if err != nil {
		return err
	}
	unpacked := bufio.NewReader(text)
	if isRecording(unpacked) {
		return d.readRecording(unpacked)
	}
	if err := checkFormat(unpacked); err != nil { // gzip may hold any of them
		return err
	}
	return d.read(unpacked)
}

// reader is the state while one dump is read.
type reader struct {
	handler Handler
	counts  Counts
	depth   int    // of lists within lists
	name    string // of the dump that is read now
	// document numbers the next document of the dump, from 0.
	document int
	// emptyList says that the dump holds a list without items; emptyLists that this is no error.
	emptyList, emptyLists bool
	// seen maps an object to its position: a cluster holds each object once.
	seen map[string]position
}

// position is the place of an object in a dump, counted from 0.
type position struct {
	document int
	item     int    // -1: the document is the object
	dump     string // its name, where it was read before another
	older    string // the apiVersion of an object that is read in another one than the present
}

func (p position) String() string {
	switch {
	case p.item < 0:
		return fmt.Sprintf("document %d", p.document)
	case p.document == 0:
		return fmt.Sprintf("item %d", p.item)
	}
	return fmt.Sprintf("document %d item %d", p.document, p.item)
}

var errNotADump = errors.New("not a dump of a cluster: expected what `kubectl get nodes,pods -A -o json` prints, or " +
	"-o yaml")

const notAManifest = "not the manifest of a pod: expected a Pod, or what makes pods, such as a Deployment or a Job, " +
	"as YAML or JSON"

func (d *reader) read(r io.Reader) error {
	parts := newLines(&boundedReader{r: r, left: MaxBytes, bound: "a dump", limit: MaxBytes})
	d.document, d.emptyList = 0, false
	before, empty := d.objects(), true
	in := bufio.NewReader(nil)
	var err error
	for err == nil && parts.next() {
		in.Reset(parts)
		var nothing bool
		nothing, err = d.readPart(in, parts)
		empty = empty && nothing
	}
	switch {
	case err != nil:
	case empty:
		err = fmt.Errorf("%w; it is empty", errNotADump)
	case d.objects() == before && !(d.emptyList && d.emptyLists):
		err = fmt.Errorf("%w; it holds no object", errNotADump)
	}
	switch {
	case parts.skipped == 0:
	case err != nil:
		return fmt.Errorf("%w; %s was left out: was standard error written to the file?", err, parts.first)
	case d.handler.Note != nil:
		d.handler.Note(fmt.Sprintf("%s: lines left out that kubectl wrote to standard error: %d; the first is %s", d.name,
			parts.skipped, parts.first))
	}
	return err
}

// readPart reads the documents of one part: JSON, or one document of YAML. `in` reads from `parts`.
func (d *reader) readPart(in *bufio.Reader, parts *lines) (empty bool, err error) {
	first, err := firstByte(in)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	start, _ := in.Peek(512)
	switch {
	case first == '{' && isJSON(start):
		err = d.readJSON(in, parts.read-int64(in.Buffered()))
	case first == '[' || first == '"' || first == 0:
		err = fmt.Errorf("%w; it starts with %q", errNotADump, first)
	default:
		start = bytes.Clone(start)
		err = d.readYAML(in)
	}
	if errors.Is(err, errNotADump) || errors.Is(err, errNotYAML) {
		err = fmt.Errorf("%w%s", err, cmp.Or(hint(start), d.helpWithYAML(err)))
	}
	return false, err
}

// isJSON tells an object in JSON from one of YAML in braces, whose keys need no quotes. Comments are for readJSON to
// refuse.
func isJSON(start []byte) bool {
	rest := bytes.TrimLeft(start[1:], " \t\r\n")
	return len(rest) == 0 || bytes.IndexByte([]byte("\"}/"), rest[0]) >= 0
}

// objects counts those that were there, of interest or not.
func (d *reader) objects() int {
	count := len(d.seen)
	for _, ignored := range d.counts.Ignored {
		count += ignored
	}
	return count
}

// firstByte returns the first byte that is not white space, without consuming it. A byte order mark is skipped.
func firstByte(in *bufio.Reader) (byte, error) {
	if mark, err := in.Peek(3); err == nil && bytes.Equal(mark, []byte("\uFEFF")) {
		in.Discard(len(mark))
	}
	for {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if !unicode.IsSpace(rune(b)) {
			return b, in.UnreadByte()
		}
	}
}

// boundedReader fails with an error that names the bound, where an io.LimitedReader would feign the end.
type boundedReader struct {
	r           io.Reader
	left, limit int64
	bound       string
	help        string // what can be done about it
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%s is larger than the limit of %d MiB%s", b.bound, b.limit>>20, b.help)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// renew grants the full bound again.
func (b *boundedReader) renew() {
	b.left = b.limit
}
