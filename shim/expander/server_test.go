package expander

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/certificates"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/testing/certtest"
)

// method is that of Cluster Autoscaler's client.
const method = "/grpcplugin.Expander/BestOptions"

// rawCodec sends and receives bytes as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(message.([]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

// fakeEngine ranks as a test says.
type fakeEngine struct {
	engine.Conn
	rank func(ctx context.Context, request *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error)
}

func (f fakeEngine) Invoke(ctx context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	response, err := f.rank(ctx, args.(*loadlinev1.RankOptionsRequest))
	if err == nil {
		proto.Merge(reply.(proto.Message), response)
	}
	return err
}

// inOrder ranks options in the order of their positions.
func inOrder(positions ...int32) *loadlinev1.RankOptionsResponse {
	response := &loadlinev1.RankOptionsResponse{Policy: &loadlinev1.RankPolicy{
		Strategies: []loadlinev1.RankPolicy_Strategy{loadlinev1.RankPolicy_PRICE}}}
	for place, position := range positions {
		response.Options = append(response.Options, &loadlinev1.RankedOption{Option: position,
			Outcome: loadlinev1.RankedOption_SCORED, Score: float64(place + 1), SuppressedUnfitness: 1, Unfitness: 1,
			CostRatio: float64(place + 1), CreationFactor: 1})
	}
	return response
}

func always(response *loadlinev1.RankOptionsResponse, err error) fakeEngine {
	return fakeEngine{
		rank: func(context.Context, *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			return response, err
		}}
}

// running is a server on a real port.
type running struct {
	*Server
	t       testing.TB
	ca      *certtest.Authority
	dir     string // of its certificate
	address string
	conn    *grpc.ClientConn
}

func start(t testing.TB, conn engine.Conn, options Options) *running {
	t.Helper()
	r := &running{t: t, ca: certtest.New(t), dir: t.TempDir()}
	cert, key := r.ca.WriteIn(r.dir, 1)
	files, err := certificates.Load(certificates.Files{Cert: cert, Key: key}, time.Now, func(bool) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Server, err = New(options, conn, files.ServerConfig()); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, listener) }()
	t.Cleanup(func() {
		r.conn.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	r.conn = r.dial(r.ca.Pool())
	return r
}

// dial connects as Cluster Autoscaler does: TLS, verified by one file, nothing else set.
func (r *running) dial(roots *x509.CertPool) *grpc.ClientConn {
	r.t.Helper()
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(roots, "")))
	if err != nil {
		r.t.Fatal(err)
	}
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // as the autoscaler's
	defer cancel()
	var response []byte
	err := conn.Invoke(ctx, method, request, &response, grpc.ForceCodecV2(rawCodec{}))
	return response, err
}

// expect asks and compares the bytes of the answer: one option with an id and nothing else.
func (r *running) expect(request []byte, group string) {
	r.t.Helper()
	got, err := call(r.t.Context(), r.conn, request)
	if err != nil {
		r.t.Errorf("got %v, want %s", err, group)
		return
	}
	if want := lengthDelimited(1, lengthDelimited(1, group)); !bytes.Equal(got, want) {
		r.t.Errorf("got % x, want % x: %s", got, want, group)
	}
}

func (r *running) counts(decided, fallback, rejected map[string]float64) {
	r.t.Helper()
	for _, c := range []struct {
		name string
		want map[string]float64
		got  func(label string) float64
	}{
		{"decisions", decided,
			func(l string) float64 { return testutil.ToFloat64(r.metrics.decisions.WithLabelValues("rank", l)) }},
		{"fallbacks", fallback,
			func(l string) float64 { return testutil.ToFloat64(r.metrics.fallbacks.WithLabelValues("rank", l)) }},
		{"rejected", rejected,
			func(l string) float64 { return testutil.ToFloat64(r.metrics.rejected.WithLabelValues(l)) }},
	} {
		for label, want := range c.want {
			if got := c.got(label); got != want {
				r.t.Errorf("%s %s: %v, want %v", c.name, label, got, want)
			}
		}
	}
}

// keptLog keeps what is logged.
type keptLog struct {
	mu    sync.Mutex
	lines []string
}

func keepLog(t testing.TB) *keptLog {
	kept := &keptLog{}
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	klog.SetLogger(funcr.New(func(prefix, args string) {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		kept.lines = append(kept.lines, args)
	}, funcr.Options{}))
	return kept
}

// has looks for a line that holds all of the texts.
func (k *keptLog) has(t *testing.T, texts ...string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.lines, func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	}) {
		t.Errorf("no line of the log has all of %q:\n%s", texts, strings.Join(k.lines, "\n"))
	}
}

func TestTheQuestionReachesTheEngine(t *testing.T) {
	var got *loadlinev1.RankOptionsRequest
	conn := fakeEngine{
		rank: func(_ context.Context, request *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			got = request
			return inOrder(1, 0), nil
		}}
	r := start(t, conn, Options{Nodes: func() (int, bool) { return 42, true }})
	log := keepLog(t)
	for _, g := range generations {
		r.expect(g.encode(t, twoGroups()), "large")
		if got.GetClusterNodes() != 42 || got.GetPolicy().GetPreset() != loadlinev1.RankPolicy_CLUSTER_AUTOSCALER {
			t.Errorf("%s: %d nodes, preset %v", g.name, got.GetClusterNodes(), got.GetPolicy().GetPreset())
		}
		want := []*loadlinev1.ExpansionOption{
			{NodeGroup: "small", NodeCount: 3, Pods: []*loadlinev1.PodRun{{Pod: 0, Count: 2}, {Pod: 1, Count: 1}}},
			{NodeGroup: "large", NodeCount: 1,
				Pods: []*loadlinev1.PodRun{{Pod: 0, Count: 2}, {Pod: 1, Count: 1}, {Pod: 2, Count: 1}}},
		}
		for i, option := range got.GetOptions() {
			checkTemplate(t, option.GetTemplateNode(), []string{"n1-standard-2", "n1-standard-8"}[i],
				[]string{"2", "8"}[i])
			option.TemplateNode = nil
			if !proto.Equal(option, want[i]) {
				t.Errorf("%s: option %v, want %v", g.name, option, want[i])
			}
		}
	}
	r.counts(map[string]float64{"ranked": 3, "fallback": 0}, nil, nil)
	log.has(t, `"nodeGroup"="large"`, `"runnerUp"="small"`, "score 1 against 2", "cost ratio 1 against 2")
}

// An option without a price is behind the others, counted, and logged.
func TestOptionsWithoutAPrice(t *testing.T) {
	response := inOrder(1, 0)
	response.Options[1] = &loadlinev1.RankedOption{Option: 0, Outcome: loadlinev1.RankedOption_NO_PRICE}
	r := start(t, always(response, nil), Options{})
	log := keepLog(t)
	r.expect(generations[2].encode(t, twoGroups()), "large")
	if got := testutil.ToFloat64(r.metrics.unpriced); got != 1 {
		t.Errorf("%v options without a price, want 1", got)
	}
	log.has(t, `"nodeGroup"="large"`, `"runnerUp"="small"`, `"over"="the other has no price"`)
}

func TestClusterSizeThatIsNotKnown(t *testing.T) {
	var got *loadlinev1.RankOptionsRequest
	conn := fakeEngine{
		rank: func(_ context.Context, request *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			got = request
			return inOrder(0, 1), nil
		}}
	r := start(t, conn, Options{Nodes: func() (int, bool) { return 0, false }})
	log := keepLog(t)
	r.expect(generations[2].encode(t, twoGroups()), "small")
	if got.ClusterNodes != nil {
		t.Errorf("%d nodes are told, and none are known", got.GetClusterNodes())
	}
	log.has(t, `"clusterSize"="not known: unfitness counts as 1"`)
}

// In twoGroups, small leaves 6000-1100 of 6000 millicores and 22500-2112 of 22500 MiB over, large 8000-4100 of 8000 and
// 30000-10304 of 30000: 1.72 and 1.14. So least waste is large, which is neither the first option nor what a broken
// engine says.
func TestWithoutAnEngineLeastWasteIsAnswered(t *testing.T) {
	notFirst := func(context.Context, *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
		panic("a bug")
	}
	for name, c := range map[string]struct {
		conn   fakeEngine
		reason string
	}{
		"gone":         {always(nil, status.Error(codes.Unavailable, "no engine")), fallbackUnavailable},
		"our bug":      {always(nil, status.Error(codes.Internal, "oops")), fallbackUnavailable},
		"not a status": {always(nil, errors.New("oops")), fallbackUnavailable},
		"late":         {always(nil, status.Error(codes.DeadlineExceeded, "late")), fallbackDeadline},
		"refused": {always(nil, status.Error(codes.InvalidArgument, "pods[0]: requests: cpu")),
			fallbackRefused},
		"too much": {always(nil, status.Error(codes.ResourceExhausted, "more than 10000 options")),
			fallbackBusy},
		"panic":               {fakeEngine{rank: notFirst}, fallbackPanic},
		"no option":           {always(inOrder(), nil), fallbackBadAnswer},
		"one option":          {always(inOrder(0), nil), fallbackBadAnswer},
		"one option twice":    {always(inOrder(0, 0), nil), fallbackBadAnswer},
		"an unknown option":   {always(inOrder(0, 2), nil), fallbackBadAnswer},
		"a negative option":   {always(inOrder(0, -1), nil), fallbackBadAnswer},
		"one option too many": {always(inOrder(0, 1, 0), nil), fallbackBadAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, c.conn, Options{})
			log := keepLog(t)
			r.expect(generations[0].encode(t, twoGroups()), "large")
			r.counts(map[string]float64{"ranked": 0, "fallback": 1}, map[string]float64{c.reason: 1}, nil)
			log.has(t, "without the engine", `"nodeGroup"="large"`, `"reason"="`+c.reason+`"`)
		})
	}
}

// An engine that hangs keeps its questions and holds up no answer, and after five the breaker keeps new ones from it.
func TestAnEngineThatHangs(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	conn := fakeEngine{
		rank: func(context.Context, *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			asked <- struct{}{}
			<-release
			return inOrder(0, 1), nil
		}}
	r := start(t, conn, Options{Timeout: 50 * time.Millisecond})
	t.Cleanup(func() { close(release) })
	keepLog(t)
	request := generations[2].encode(t, twoGroups())
	for range maxInFlight + 3 {
		r.expect(request, "large")
	}
	if got := len(asked); got != maxInFlight {
		t.Errorf("%d questions hang, want %d", got, maxInFlight)
	}
	r.counts(map[string]float64{"fallback": maxInFlight + 3},
		map[string]float64{fallbackDeadline: maxInFlight, fallbackBusy: 3}, nil)
}

func TestTheBreakerOpensAndCloses(t *testing.T) {
	var mu sync.Mutex
	dead, asked := true, 0
	conn := fakeEngine{
		rank: func(context.Context, *loadlinev1.RankOptionsRequest) (*loadlinev1.RankOptionsResponse, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			if dead {
				return nil, status.Error(codes.Unavailable, "no engine")
			}
			return inOrder(0, 1), nil
		}}
	r := start(t, conn, Options{})
	keepLog(t)
	request := generations[2].encode(t, twoGroups())
	for range guard.Failures + 3 {
		r.expect(request, "large")
	}
	mu.Lock()
	if dead = false; asked != guard.Failures {
		t.Errorf("a dead engine was asked %d times, want %d", asked, guard.Failures)
	}
	mu.Unlock()
	time.Sleep(guard.ProbeInterval + 50*time.Millisecond)
	r.expect(request, "small")
	r.counts(map[string]float64{"ranked": 1},
		map[string]float64{fallbackUnavailable: guard.Failures, fallbackBreakerOpen: 3}, nil)
}

// Requests that take long to arrive say nothing of the engine.
func TestLateRequestsDoNotOpenTheBreaker(t *testing.T) {
	r := start(t, always(inOrder(0, 1), nil), Options{})
	keepLog(t)
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	data := generations[2].encode(t, twoGroups())
	q, err := decodeBytes(data, len(data))
	if err != nil {
		t.Fatal(err)
	}
	for range guard.Failures + 1 {
		if got := r.chooser.choose(late, q); got.group != "large" || got.fallback != fallbackDeadline {
			t.Errorf("chose %s, fallback %q", got.group, got.fallback)
		}
	}
	r.expect(data, "small")
}

func TestTheEngineHasUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose time does not pass
		s := &Server{options: Options{Timeout: DefaultTimeout}, within: answerTime}
		for elapsed, want := range map[time.Duration]time.Duration{
			0: DefaultTimeout, time.Second: DefaultTimeout,
			2800 * time.Millisecond: 2800*time.Millisecond + fallbackTime, // a moment is left
			// And no more than there is.
			3200 * time.Millisecond: answerTime - fallbackTime, 4 * time.Second: answerTime - fallbackTime,
		} {
			began := time.Now().Add(-elapsed)
			if got := s.engineDeadline(began).Sub(began); got != want {
				t.Errorf("after %v the engine has until %v, want %v", elapsed, got, want)
			}
		}
	})
}

func TestNothingToChooseFrom(t *testing.T) {
	r := start(t, always(nil, errors.New("nobody is to be asked")), Options{})
	if got, err := call(t.Context(), r.conn,
		generations[2].encode(t, asked{templates: twoGroups().templates})); err != nil || len(got) != 0 {
		t.Errorf("got % x, %v", got, err)
	}
	r.counts(map[string]float64{"ranked": 0, "fallback": 0}, nil, nil)
}

func (r *running) refused(request []byte, code codes.Code, says, reason string) {
	r.t.Helper()
	if got, err := call(r.t.Context(), r.conn, request); status.Code(err) != code ||
		!strings.Contains(err.Error(), says) {
		r.t.Errorf("got % x, %v, want %v %q", got, err, code, says)
	}
	// grpc itself tells the client of a message beyond the limit, before we hear of it.
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if testutil.ToFloat64(r.metrics.rejected.WithLabelValues(reason)) > 0 {
			break
		}
	}
	r.counts(map[string]float64{"ranked": 0, "fallback": 0}, nil, map[string]float64{reason: 1})
}

func TestRequestsThatAreRefused(t *testing.T) {
	request := generations[2].encode(t, twoGroups())
	keepLog(t)
	start(t, always(inOrder(0, 1), nil), Options{MaxRequestBytes: len(request)}).expect(request, "small")
	start(t, always(inOrder(0, 1), nil), Options{MaxRequestBytes: len(request) - 1}).
		refused(request, codes.ResourceExhausted,
			fmt.Sprintf("larger than max (%d vs. %d)", len(request), len(request)-1), rejectSize)
	start(t, always(inOrder(0, 1), nil), Options{}).
		refused(request[:len(request)-1], codes.InvalidArgument, "not a BestOptionsRequest", rejectInvalid)
	many := bytes.Repeat([]byte{0x0a, 0x00}, 3) // three options of one id, then more than are read
	for i := range maxOptions + 1 {
		many = append(many, lengthDelimited(1, lengthDelimited(1, fmt.Sprint(i)))...)
	}
	start(t, always(inOrder(0, 1), nil), Options{}).refused(many, codes.ResourceExhausted, "too much", rejectSize)
}

// Clients that open a call and send nothing keep others out for a moment, and take no memory.
func TestClientsThatSendNothing(t *testing.T) {
	r := start(t, always(inOrder(0, 1), nil), Options{})
	r.within = 2 * fallbackTime
	keepLog(t)
	var idle []grpc.ClientStream
	for range maxReading {
		stream, err := r.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, method,
			grpc.ForceCodecV2(rawCodec{}))
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, stream)
	}
	request := generations[2].encode(t, twoGroups())
	for deadline := time.Now().Add(60 * time.Second); len(r.reading) < maxReading && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if _, err := call(t.Context(), r.conn, request); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	for _, stream := range idle {
		var response []byte
		if err := stream.RecvMsg(&response); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("a client that sends nothing: %v", err)
		}
	}
	for deadline := time.Now().Add(60 * time.Second); len(r.reading) > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	r.expect(request, "small")
	r.counts(map[string]float64{"ranked": 1}, nil, map[string]float64{rejectBusy: 1, rejectDeadline: maxReading})
}

func TestTLS(t *testing.T) {
	r := start(t, always(inOrder(0, 1), nil), Options{})
	request := generations[2].encode(t, twoGroups())
	r.expect(request, "small")

	stranger := r.dial(certtest.New(t).Pool())
	defer stranger.Close()
	if _, err := call(t.Context(), stranger, request); status.Code(err) != codes.Unavailable ||
		!strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a client with another authority: %v", err)
	}
	plain, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := call(t.Context(), plain, request); status.Code(err) != codes.Unavailable {
		t.Errorf("a client without TLS: %v", err)
	}

	r.ca.WriteIn(r.dir, 2)
	time.Sleep(certificates.ReloadInterval + 50*time.Millisecond)
	conn, err := tls.Dial("tcp", r.address, &tls.Config{RootCAs: r.ca.Pool(), NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if serial := conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); serial != 2 {
		t.Errorf("certificate %d after the change, want 2", serial)
	}
	r.expect(request, "small") // the connection that was there lives on
}

func TestOptionsOutOfRange(t *testing.T) {
	for says, o := range map[string]Options{
		"request limit": {MaxRequestBytes: -1},
		"timeout -1s":   {Timeout: -time.Second},
		"at most 3.5s":  {Timeout: 3501 * time.Millisecond},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", o, err, says)
		}
	}
}

func TestMadeUpGroupsTakeNoMemory(t *testing.T) {
	m := newMetrics()
	for i := range maxWinners + 10 {
		m.chosen(choice{group: fmt.Sprint(i)}, 0)
	}
	m.chosen(choice{group: "0"}, 0)
	if got := testutil.CollectAndCount(m.winners); got != maxWinners+1 {
		t.Errorf("%d time series, want %d", got, maxWinners+1)
	}
	if got := testutil.ToFloat64(m.winners.WithLabelValues(otherWinners)); got != 10 {
		t.Errorf("%v others, want 10", got)
	}
	if got := testutil.ToFloat64(m.winners.WithLabelValues("0")); got != 2 {
		t.Errorf("%v for the first group, want 2", got)
	}
}

// manyPods is 20 groups that could each take 3,500 pods, some 117 MiB.
func manyPods(t testing.TB) []byte {
	a := asked{templates: map[string]*v1.Node{}}
	var pods []*v1.Pod
	for i := range 3500 {
		pods = append(pods, ordinaryPod(fmt.Sprintf("web-%05d", i), fmt.Sprintf("%dm", 100+i%50), "1Gi"))
	}
	for i := range 20 {
		group := fmt.Sprintf("group-%02d", i)
		a.options = append(a.options, askedOption{group, 500, pods})
		a.templates[group] = templateNode("n1-standard-8", "8", "30000Mi")
	}
	return generations[2].encode(t, a)
}

// A request with all pods of 20 groups is read and ranked. How long that takes, the benchmark below tells: a call
// that is late by Cluster Autoscaler's clock would be answered by least waste, so here it has all the time.
func TestManyPodsAreAnswered(t *testing.T) {
	request := manyPods(t)
	if megabytes := len(request) >> 20; megabytes < 110 || megabytes > 120 {
		t.Fatalf("the request has %d MiB, and was to have some 117", megabytes)
	}
	r := startForManyPods(t)
	got, err := callWithin(t, r, request)
	if want := lengthDelimited(1, lengthDelimited(1, "group-19")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got % x, %v", got, err)
	}
	r.counts(map[string]float64{"ranked": 1, "fallback": 0}, nil, nil)
}

// startForManyPods ranks twenty groups, the last one first, and is never late.
func startForManyPods(t testing.TB) *running {
	positions := make([]int32, 20)
	for i := range positions {
		positions[i] = int32(19 - i)
	}
	r := start(t, always(inOrder(positions...), nil), Options{Timeout: answerTime - fallbackTime})
	r.within, r.options.Timeout = 10*time.Minute, 5*time.Minute
	keepLog(t)
	return r
}

func callWithin(t testing.TB, r *running, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var response []byte
	err := r.conn.Invoke(ctx, method, request, &response, grpc.ForceCodecV2(rawCodec{}))
	return response, err
}

// The time that counts is that of the processors, which is the same on a busy machine, and more than the clock shows on
// an idle one: client and server, with what both take to encrypt and decrypt. The aim is a second.
func BenchmarkManyPods(b *testing.B) {
	request := manyPods(b)
	r := startForManyPods(b)
	b.SetBytes(int64(len(request)))
	before := cpuTime(b)
	for b.Loop() {
		if _, err := callWithin(b, r, request); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
}

// cpuTime is the time that this process has taken of all processors.
func cpuTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkDecode(b *testing.B) {
	request := manyPods(b)
	b.SetBytes(int64(len(request)))
	for b.Loop() {
		if _, err := decodeBytes(request, 16<<10); err != nil {
			b.Fatal(err)
		}
	}
}
