// Package expander answers Cluster Autoscaler's gRPC expander: of several node groups that could grow, which one.
//
// It folds what it is asked, has the engine rank the options, and answers with the id of the best one. It always
// answers with exactly one of the ids asked about, and in time: without an engine by least waste, which is what Cluster
// Autoscaler itself does by default.
package expander

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"loadline.dev/shim/api/grpcplugin"
	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/engine"
	"loadline.dev/shim/guard"
	"loadline.dev/shim/internal/ports"
	"loadline.dev/shim/ranking"
)

const (
	// DefaultMaxRequestBytes is how large a request may be. Each option repeats its pods, of 1.7 kB each as a rule.
	DefaultMaxRequestBytes = 128 << 20
	// DefaultTimeout is how long the engine may take, from the start of a request on. Cluster Autoscaler gives up
	// after 5 s.
	DefaultTimeout = 3 * time.Second

	// answerTime is when a request is answered, or given up where it has not even arrived.
	answerTime = 4 * time.Second
	// fallbackTime is left for the answer without the engine.
	fallbackTime = 500 * time.Millisecond

	// maxReading bounds the requests that are read at a time, and so the memory that they take. An autoscaler has one
	// under way.
	maxReading = 2
	// maxInFlight bounds the questions to the engine at a time: one that hangs keeps its question.
	maxInFlight = 4
	// maxConnections bounds the connections, and maxOfClient those of one client. An autoscaler keeps one.
	maxConnections = 32
	maxOfClient    = 8
	maxHeaderBytes = 16 << 10
	// connectionWindow is what may be on its way to us at a time. With the default of 64 kB a request of 100 MB waits
	// for thousands of acknowledgements.
	connectionWindow = 16 << 20
	handshakeTimeout = 5 * time.Second
	// idleTimeout is when a connection is closed on which nobody asks. An autoscaler opens another one.
	idleTimeout = 2 * time.Minute
)

// Options set up a server.
type Options struct {
	// Policy says how to rank, and what nodes cost. Nil: the default.
	Policy *ranking.Policy
	// MaxRequestBytes bounds a request; 0: DefaultMaxRequestBytes.
	MaxRequestBytes int
	// Timeout bounds the question to the engine; 0: DefaultTimeout. At most 3.5 s.
	Timeout time.Duration
	// Line is the load line that the scheduler keeps to; nil: there is none.
	Line *loadlinev1.LoadLine
	// Nodes tells how many nodes the cluster has; false: that is not known yet.
	Nodes func() (int, bool)
	// Cluster has a question answered about the cluster as the engine knows it, for a policy that reads its pods; nil,
	// and where it fails, the pods of the options are all that is read. In place of Nodes.
	Cluster func(ctx context.Context, ask func(at *loadlinev1.Changes) error) error
}

// Check returns an error for options that are out of range.
func (o Options) Check() error {
	if o.MaxRequestBytes < 0 || o.MaxRequestBytes > 2<<30-1 {
		return fmt.Errorf("request limit %d: must be 1 to %d bytes", o.MaxRequestBytes, 2<<30-1)
	}
	if o.Timeout < 0 || o.Timeout > answerTime-fallbackTime {
		return fmt.Errorf("timeout %v: must be positive, and at most %v: Cluster Autoscaler gives up after 5s",
			o.Timeout, answerTime-fallbackTime)
	}
	return nil
}

// Server answers an autoscaler's requests.
type Server struct {
	options Options
	within  time.Duration // answerTime
	metrics *metrics
	grpc    *grpc.Server
	chooser chooser
	reading chan struct{} // one element per request that is read
}

// New returns a server for an engine. `certificates` are its own: the autoscaler speaks TLS or not at all.
func New(options Options, conn engine.Conn, certificates *tls.Config) (*Server, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	if options.Policy == nil {
		options.Policy = ranking.Default()
	}
	if options.MaxRequestBytes == 0 {
		options.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	s := &Server{options: options, within: answerTime, metrics: newMetrics(), reading: make(chan struct{}, maxReading)}
	s.chooser = chooser{
		engine: loadlinev1.NewAutoscalerClient(conn), guard: guard.New(conn, guard.Options{AtOnce: maxInFlight,
			Changed: guard.Log("node groups are chosen by least waste")}),
		policy: options.Policy.Proto(), prices: options.Policy.PriceModel(), priorities: options.Policy.Matcher(),
		line: options.Line, nodes: options.Nodes, cluster: options.Cluster,
	}
	kept := keptOfPod
	if options.Line != nil {
		kept = keptUnderLine
	}
	s.grpc = grpc.NewServer(
		grpc.Creds(credentials.NewTLS(certificates)),
		grpc.ForceServerCodecV2(codec{kept}),
		grpc.MaxRecvMsgSize(options.MaxRequestBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(2*maxReading),
		grpc.InitialConnWindowSize(connectionWindow),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout}),
	)
	s.grpc.RegisterService(&service, s)
	return s, nil
}

// service is the one of proto/grpcplugin, with a handler for streams: on the wire a call of one message is a stream of
// one, and only here does the server decide when, and whether, to read it.
var service = grpc.ServiceDesc{
	ServiceName: grpcplugin.Expander_ServiceDesc.ServiceName,
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "BestOptions",
		Handler:    func(server any, stream grpc.ServerStream) error { return server.(*Server).bestOptions(stream) },
	}},
	Metadata: grpcplugin.Expander_ServiceDesc.Metadata,
}

// Serve answers until ctx ends, and then finishes the requests under way. It closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() {
		end := time.AfterFunc(s.within, s.grpc.Stop)
		defer end.Stop()
		s.grpc.GracefulStop()
	})
	defer stop()
	return s.grpc.Serve(ports.Limit(listener, maxConnections, maxOfClient)) // once stopped, when all is finished
}

// bestOptions answers one request.
func (s *Server) bestOptions(stream grpc.ServerStream) error {
	began := time.Now()
	asked, err := s.receive(stream)
	if err != nil {
		return err
	}
	var response grpcplugin.BestOptionsResponse
	if len(asked.options) > 0 { // none: an earlier expander in the autoscaler's chain left nothing
		// It does not end with the request: a client that hangs up says nothing of the engine.
		ask, stop := context.WithDeadline(context.WithoutCancel(stream.Context()), s.engineDeadline(began))
		chosen := s.chooser.choose(ask, asked)
		stop()
		response.Options = []*grpcplugin.Option{{NodeGroupId: chosen.group}}
		s.metrics.chosen(chosen, time.Since(began))
		chosen.log(asked, time.Since(began))
	}
	return stream.SendMsg(&response)
}

// engineDeadline is when the engine must have answered a request that began at a time. One that took long to arrive
// leaves the engine a moment all the same, as long as the answer is in time.
func (s *Server) engineDeadline(began time.Time) time.Time {
	deadline := began.Add(s.options.Timeout)
	if moment := time.Now().Add(fallbackTime); deadline.Before(moment) {
		deadline = moment
	}
	if last := began.Add(s.within - fallbackTime); deadline.After(last) {
		deadline = last
	}
	return deadline
}

// received is a message that the codec reads.
type received struct {
	question *question
	bytes    int
	err      error // it is no request, or none that we hold
}

// receive reads a request. On an error the autoscaler continues as if it had not asked.
func (s *Server) receive(stream grpc.ServerStream) (*question, error) {
	select {
	case s.reading <- struct{}{}:
	default:
		return nil, s.reject(rejectBusy, status.Error(codes.ResourceExhausted, "too many requests at a time"))
	}
	// Beside, as a client that sends slowly, or hangs, is not waited for.
	var message received
	done := make(chan error, 1)
	go func() {
		defer func() { <-s.reading }()
		done <- stream.RecvMsg(&message)
	}()
	late := time.NewTimer(s.within)
	defer late.Stop()
	var err error
	select {
	case err = <-done: // also when the client hangs up
	case <-late.C:
		return nil, s.reject(rejectDeadline,
			status.Errorf(codes.DeadlineExceeded, "the request did not arrive within %v", s.within))
	}
	switch {
	case status.Code(err) == codes.ResourceExhausted: // what grpc says of a message beyond the limit
		return nil, s.reject(rejectSize, err)
	case err != nil:
		return nil, s.reject(rejectBroken, err)
	case errors.Is(message.err, errTooMuch):
		return nil, s.reject(rejectSize, status.Error(codes.ResourceExhausted, message.err.Error()))
	case message.err != nil:
		return nil, s.reject(rejectInvalid,
			status.Errorf(codes.InvalidArgument, "not a BestOptionsRequest: %v", message.err))
	}
	s.metrics.bytes.Observe(float64(message.bytes))
	return message.question, nil
}

// reject counts a request that is not answered.
func (s *Server) reject(reason string, err error) error {
	s.metrics.rejected.WithLabelValues(reason).Inc()
	klog.ErrorS(err, "A request of the autoscaler is not answered; it goes on by its next expander", "reason", reason)
	return err
}

// read has a message read from where it lies, and keeps a bug of ours from ending the process.
func (m *received) read(decode func() (*question, error)) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.ErrorS(nil, "Panic while reading a request", "cause", cause, "stack", string(debug.Stack()))
			m.err = fmt.Errorf("panic: %v", cause)
		}
	}()
	m.question, m.err = decode()
}
