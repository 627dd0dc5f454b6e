package expander

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of proto/grpcplugin/expander.proto.
const (
	requestOptions      = 1
	requestNodeMap      = 2
	requestNodeBytesMap = 3

	optionNodeGroupID = 1
	optionNodeCount   = 2
	optionPod         = 4
	optionPodBytes    = 5

	entryKeyField = 1
	entryValue    = 2
)

// The most that one request may contain: a message of 128 MiB has room for so many empty objects that they would take
// gigabytes.
const (
	maxOptions   = 100_000
	maxTemplates = 100_000
	maxShapes    = 100_000
)

// errTooMuch says that a request holds more than we hold.
var errTooMuch = errors.New("too much")

// question is what Cluster Autoscaler asks, with equal pods folded and without what plays no part.
type question struct {
	// options are in the order of the request, each node group once.
	options []option
	// shapes are the distinct pods, in the order in which they first occur, as plain protobufs of v1.Pod.
	shapes [][]byte
	// templates are the nodes of the groups, as plain protobufs of v1.Node.
	templates map[string][]byte
	// pods counts the pods of all options.
	pods int
}

// option is one way to grow.
type option struct {
	group string
	nodes int32
	pods  []podRun // in the order of their shapes
}

// podRun is a number of equal pods.
type podRun struct {
	shape, count int32
}

// decoder reads a BestOptionsRequest of any release as it lies in the buffers that it came in. In a large one nearly
// all bytes are pods, which repeat in each option, and in nearly all of them what is of interest repeats as well:
// nothing else is kept.
type decoder struct {
	in      *mem.Reader
	kept    *fields // of a pod
	out     question
	byBytes map[string]int32 // shape by its bytes
	byGroup map[string]int   // option by its group
	newForm map[string]bool  // groups whose template came as bytes
	pod     []byte           // scratch: a pod as it came
	pruned  []byte           // scratch: what is kept of it
	counts  [2]tally         // pods of the option under way: as messages, as bytes
}

// decode reads a request. It returns errTooMuch for a request that exceeds the bounds, and another error for bytes that
// are not a request.
func decode(in *mem.Reader, keptOfPod *fields) (*question, error) {
	d := decoder{in: in, kept: keptOfPod, byBytes: map[string]int32{}, byGroup: map[string]int{},
		newForm: map[string]bool{}}
	d.out.templates = map[string][]byte{}
	err := d.message(in.Remaining(), func(number protowire.Number, kind protowire.Type, value uint64) error {
		switch {
		case number == requestOptions && kind == protowire.BytesType:
			return d.option(int(value))
		case (number == requestNodeMap || number == requestNodeBytesMap) && kind == protowire.BytesType:
			return d.template(int(value), number == requestNodeBytesMap)
		}
		return d.skip(kind, value)
	})
	if err != nil {
		return nil, err
	}
	return &d.out, nil
}

// message reads the tags of a message of `size` bytes, and has `field` read the rest of each field: of one of
// BytesType all its bytes, whose number is `value`. Of VarintType `value` is the value.
func (d *decoder) message(size int,
	field func(number protowire.Number, kind protowire.Type, value uint64) error) error {
	end := d.in.Remaining() - size
	for d.in.Remaining() > end {
		tag, err := binary.ReadUvarint(d.in)
		if err != nil {
			return errTruncated(err)
		}
		number, kind := protowire.DecodeTag(tag)
		if number < protowire.MinValidNumber {
			return fmt.Errorf("field number %d", number)
		}
		value := uint64(0)
		if kind == protowire.VarintType || kind == protowire.BytesType {
			if value, err = binary.ReadUvarint(d.in); err != nil {
				return errTruncated(err)
			}
		}
		if kind == protowire.BytesType && value > uint64(max(d.in.Remaining()-end, 0)) {
			return fmt.Errorf("field %d has %d bytes, and there are %d", number, value, d.in.Remaining()-end)
		}
		if err := field(number, kind, value); err != nil {
			return err
		}
	}
	if d.in.Remaining() < end {
		return errors.New("a field ends behind its message")
	}
	return nil
}

func errTruncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// skip reads the rest of a field that is of no interest.
func (d *decoder) skip(kind protowire.Type, value uint64) (err error) {
	switch kind {
	case protowire.VarintType:
	case protowire.BytesType:
		_, err = d.in.Discard(int(value))
	case protowire.Fixed32Type:
		_, err = d.in.Discard(4)
	case protowire.Fixed64Type:
		_, err = d.in.Discard(8)
	default:
		err = fmt.Errorf("wire type %d", kind)
	}
	return err
}

// bytes reads a field of BytesType into `into`, which may grow.
func (d *decoder) bytes(into []byte, size int) ([]byte, error) {
	into = slices.Grow(into[:0], size)[:size]
	_, err := io.ReadFull(d.in, into)
	return into, err
}

func (d *decoder) option(size int) error {
	var o option
	for i := range d.counts {
		d.counts[i].clear()
	}
	err := d.message(size, func(number protowire.Number, kind protowire.Type, value uint64) error {
		switch {
		case number == optionNodeGroupID && kind == protowire.BytesType:
			group, err := d.bytes(nil, int(value))
			if err == nil && !utf8.Valid(group) {
				err = errors.New("a node group whose id is not UTF-8")
			}
			o.group = string(group)
			return err
		case number == optionNodeCount && kind == protowire.VarintType:
			o.nodes = int32(value)
			return nil
		case number == optionPod && kind == protowire.BytesType:
			return d.addPod(int(value), &d.counts[0])
		case number == optionPodBytes && kind == protowire.BytesType:
			return d.addPod(int(value), &d.counts[1])
		}
		return d.skip(kind, value)
	})
	if err != nil {
		return err
	}
	counted := &d.counts[0]
	if len(d.counts[1].shapes) > 0 {
		counted = &d.counts[1]
	}
	o.pods = counted.runs()
	return d.addOption(o)
}

// addOption keeps of several options of one group the last one: it is the one that the client would carry out.
func (d *decoder) addOption(o option) error {
	if at, again := d.byGroup[o.group]; again {
		d.out.options[at] = o
		return nil
	}
	if len(d.out.options) == maxOptions {
		return fmt.Errorf("%w: more than %d options", errTooMuch, maxOptions)
	}
	d.byGroup[o.group] = len(d.out.options)
	d.out.options = append(d.out.options, o)
	return nil
}

func (d *decoder) addPod(size int, to *tally) (err error) {
	if d.pod, err = d.bytes(d.pod, size); err != nil {
		return err
	}
	if d.pruned, err = d.kept.prune(d.pruned[:0], d.pod); err != nil {
		return fmt.Errorf("a pod: %w", err)
	}
	shape, known := d.byBytes[string(d.pruned)]
	if !known {
		if len(d.out.shapes) == maxShapes {
			return fmt.Errorf("%w: more than %d pods that differ", errTooMuch, maxShapes)
		}
		shape = int32(len(d.out.shapes))
		own := slices.Clone(d.pruned)
		d.out.shapes = append(d.out.shapes, own)
		d.byBytes[string(own)] = shape
	}
	to.add(shape)
	d.out.pods++
	return nil
}

// template reads an entry of one of the two maps. What came as bytes counts.
func (d *decoder) template(size int, newForm bool) error {
	var group string
	var node []byte
	err := d.message(size, func(number protowire.Number, kind protowire.Type, value uint64) (err error) {
		switch {
		case number == entryKeyField && kind == protowire.BytesType:
			var key []byte
			key, err = d.bytes(nil, int(value))
			group = string(key)
			return err
		case number == entryValue && kind == protowire.BytesType:
			node, err = d.bytes(nil, int(value))
			return err
		}
		return d.skip(kind, value)
	})
	if err != nil {
		return err
	}
	if d.newForm[group] && !newForm {
		return nil
	}
	pruned, err := keptOfNode.prune(nil, node)
	if err != nil {
		return fmt.Errorf("the template node of group %q: %w", group, err)
	}
	if len(d.out.templates) == maxTemplates {
		return fmt.Errorf("%w: more than %d template nodes", errTooMuch, maxTemplates)
	}
	d.out.templates[group] = pruned
	d.newForm[group] = newForm
	return nil
}

// tally counts shapes.
type tally struct {
	counts []int32 // by shape; 0 for all but those in shapes
	shapes []int32
}

func (t *tally) add(shape int32) {
	if int(shape) >= len(t.counts) {
		t.counts = append(t.counts, make([]int32, int(shape)+1-len(t.counts))...)
	}
	if t.counts[shape] == 0 {
		t.shapes = append(t.shapes, shape)
	}
	if t.counts[shape] < math.MaxInt32 {
		t.counts[shape]++
	}
}

// runs are in the order of shapes, so that options for the same pods cost the same to the last digit, in whatever
// order the pods come.
func (t *tally) runs() []podRun {
	slices.Sort(t.shapes)
	out := make([]podRun, 0, len(t.shapes))
	for _, shape := range t.shapes {
		out = append(out, podRun{shape, t.counts[shape]})
	}
	return out
}

func (t *tally) clear() {
	for _, shape := range t.shapes {
		t.counts[shape] = 0
	}
	t.shapes = t.shapes[:0]
}
