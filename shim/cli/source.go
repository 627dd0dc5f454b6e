package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/dump"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/internal/kuberelease"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/slack"
)

// engineFlags say which engine is asked, and how one in this process is set up.
type engineFlags struct {
	address string
	// maxQuestionBytes and slackNamespace are as the flags of loadlined; 0 and empty: its default.
	maxQuestionBytes int64
	slackNamespace   string
}

func addEngineFlag(flags *pflag.FlagSet, e *engineFlags) {
	flags.StringVar(&e.address,
		"engine", "inprocess", "engine: inprocess, inprocess:///path/to/libloadline.so or unix:///path/to/socket")
	flags.Int64Var(&e.maxQuestionBytes, "max-question-bytes", 256<<20,
		"memory that one question may take in an engine in this process; what would take more is cut short and says so")
	if flags.Lookup("slack-namespace") == nil {
		flags.StringVar(&e.slackNamespace, "slack-namespace", slack.DefaultNamespace,
			"namespace of our own placeholders, for an engine in this process")
	}
}

func (e engineFlags) open() (engine.Conn, error) {
	return openEngine(e.address,
		&loadlinev1.EngineConfig{MaxQuestionBytes: e.maxQuestionBytes, SlackNamespace: e.slackNamespace})
}

// openEngine connects to an engine, of which each field that is set is a flag of the same name.
func openEngine(address string, config *loadlinev1.EngineConfig) (engine.Conn, error) {
	conn, err := engine.OpenWith(address, config)
	if wrong := (*engine.AddressError)(nil); errors.As(err, &wrong) {
		return nil, usageError{err}
	}
	if said, ok := status.FromError(err); ok && err != nil {
		field, problem, _ := strings.Cut(said.Message(), ": ")
		if config.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(field)) != nil {
			return nil, usagef("--%s: %s", strings.ReplaceAll(field, "_", "-"), problem)
		}
	}
	return conn, engineError(err)
}

// sourceFlags say where a command finds the cluster: on an API server, or in a dump.
type sourceFlags struct {
	clusterFlags
	files []string     // dumps
	loop  loopNumber   // of a recording; 0: the last one
	nodes nodeSelector // the nodes that the answer lists
	// kept, if set, keeps what was read of the cluster for those who read it again.
	kept *keptCluster
}

func addSourceFlags(flags *pflag.FlagSet, s *sourceFlags) {
	addClusterFlags(flags, &s.clusterFlags)
	flags.StringArrayVarP(&s.files, "filename", "f", nil, "dump of a cluster, as 'kubectl get nodes,pods -A -o json' "+
		"prints it, or a recording that --record of plan or autoscaler writes, instead of a live one: a file, a folder of "+
		"files or a URL, gzipped or not; - is standard input; may be repeated, for a cluster in several files")
	flags.Var(&s.loop, "loop", "loop of a recording that is read, from 1 (default: the last one)")
}

// loopNumber is a flag with the number of a loop, from 1; 0: it was not given.
type loopNumber int

// Set reads it.
func (n *loopNumber) Set(text string) error {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return errors.New("must be a whole number from 1")
	}
	*n = loopNumber(number)
	return nil
}

// String returns it as it is given.
func (n *loopNumber) String() string { return strconv.Itoa(int(*n)) }

// Type names what the flag takes.
func (n *loopNumber) Type() string { return "int" }

// inquiry is what questions about a cluster have in common: where it is, which engine is asked, and the form of the
// answer.
type inquiry struct {
	sourceFlags
	engine engineFlags
	output outputFlag
}

// addTo adds the flags, behind those of the command itself.
func (q *inquiry) addTo(flags *pflag.FlagSet, forms ...string) {
	addSourceFlags(flags, &q.sourceFlags)
	addEngineFlag(flags, &q.engine)
	addOutputFlag(flags, &q.output, forms...)
}

// fromFile says whether the cluster is in a dump.
func (s *sourceFlags) fromFile() bool { return len(s.files) > 0 }

// fromStdin says whether standard input is such a dump, or one of several: it can be read once.
func (s *sourceFlags) fromStdin() bool { return slices.Contains(s.files, "-") }

// readOnce says whether a dump cannot be read again: it is standard input or a pipe.
func (s *sourceFlags) readOnce() bool {
	return slices.ContainsFunc(s.files, func(file string) bool {
		info, err := os.Stat(file)
		return file == "-" || err == nil && info.Mode()&os.ModeNamedPipe != 0
	})
}

// name says what the cluster is called.
func (s *sourceFlags) name() string {
	switch {
	case len(s.files) == 1 && s.fromStdin():
		return "standard input"
	case s.fromFile():
		return strings.Join(s.files, ", ")
	case s.contextName() != "":
		return s.contextName()
	}
	if raw, err := s.config().RawConfig(); err == nil && raw.CurrentContext != "" {
		return raw.CurrentContext
	}
	return "cluster"
}

// minor returns the release of Kubernetes by which pods count that are being resized: the one that is meant, or that of
// the API server; 0: the default.
func (s *sourceFlags) minor(fit *loadlinev1.FitOptions) int32 {
	if s.fromFile() {
		return fit.GetKubernetesMinor()
	}
	client, err := s.client()
	if err != nil { // reading the cluster says so
		return fit.GetKubernetesMinor()
	}
	return kuberelease.Meant(fit.GetKubernetesMinor(), client.Discovery())
}

// loadGroups reads a file with node groups; the empty name means none.
func loadGroups(name string) (nodegroup.File, error) {
	if name == "" {
		return nodegroup.File{}, nil
	}
	return nodegroup.Load(name)
}

// podName is a pod as named on the command line.
type podName struct{ namespace, name string }

func (p podName) String() string { return p.namespace + "/" + p.name }

// podPrefix marks a pod where something else could be meant as well.
const podPrefix = "pod/"

// parsePod reads [pod/][NAMESPACE/]NAME.
func (s *sourceFlags) parsePod(text string) (podName, error) {
	of := strings.TrimPrefix(text, podPrefix)
	namespace, name, given := strings.Cut(of, "/")
	if !given {
		name = of
		namespace = s.defaultNamespace()
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return podName{}, usageError{&podNameError{text}}
	}
	return podName{namespace, name}, nil
}

// podNameError says that a text names no pod.
type podNameError struct{ text string }

func (e *podNameError) Error() string {
	return fmt.Sprintf("pod %q: must be NAME or NAMESPACE/NAME", e.text)
}

// defaultNamespace is that of -n, else on a live cluster that of the context.
func (s *sourceFlags) defaultNamespace() string {
	if s.givenNamespace() != "" {
		return s.givenNamespace()
	}
	if !s.fromFile() {
		if namespace, _, err := s.config().Namespace(); err == nil && namespace != "" {
			return namespace
		}
	}
	return metav1.NamespaceDefault
}

// read hands all nodes and pods to the handler and returns how many kinds of other objects were there. `kinds` are the
// kinds that a live cluster is asked for, of those that planners look up; nil: all.
func (s *sourceFlags) read(ctx context.Context, stdin io.Reader, handler dump.Handler,
	kinds []string) (dump.Counts, error) {
	if s.loop > 0 && !s.fromFile() {
		return dump.Counts{}, usagef("--loop %d: must be the number of a loop in a recording, which -f names", s.loop)
	}
	if s.fromFile() {
		if s.kept != nil {
			return s.kept.dumps.read(handler, func(all dump.Handler) (dump.Counts, error) {
				return s.readFiles(ctx, stdin, all)
			})
		}
		return s.readFiles(ctx, stdin, handler)
	}
	l := lister{}
	if s.kept != nil {
		l.kept = s.kept.lists
	}
	var err error
	if l.client, err = s.client(); err != nil {
		return dump.Counts{}, err
	}
	return l.read(ctx, handler, kinds)
}

// readFiles is read of dumps.
func (s *sourceFlags) readFiles(ctx context.Context, stdin io.Reader, handler dump.Handler) (dump.Counts, error) {
	handler.Loop = int(s.loop)
	counts, err := dump.ReadFiles(ctx, s.files, stdin, handler)
	if err == nil && s.loop > 0 && counts.Loop == 0 {
		err = usagef("--loop %d: nothing that -f names is a recording", s.loop)
	}
	return counts, err
}
