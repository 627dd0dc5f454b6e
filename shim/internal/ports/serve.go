package ports

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// MaxHeaderBytes bounds the header of a request.
const MaxHeaderBytes = 16 << 10

// NewServer returns a server that bounds how long requests and answers take, and how long a connection is kept on which
// nobody asks.
func NewServer(handler http.Handler, idle time.Duration) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, IdleTimeout: idle, MaxHeaderBytes: MaxHeaderBytes}
}

// Listen listens at an address, within the bounds of Limit.
func Listen(address string, all, each int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return Limit(listener, all, each), nil
}

// Serve answers probes and whoever scrapes metrics, within the bounds of Limit, until the function that it returns is
// called.
func Serve(address string, handler http.Handler, all, each int) (closeServer func(), err error) {
	listener, err := Listen(address, all, each)
	if err != nil {
		return nil, err
	}
	server := NewServer(handler, IdleTime)
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.ErrorS(err, "Probes are not answered any more")
		}
	}()
	return func() { server.Close() }, nil
}

// Metrics answers with metrics.
func Metrics(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{ErrorLog: errorLog{}, MaxRequestsInFlight: MostGathering})
}

// errorLog passes on what the handler cannot tell its client.
type errorLog struct{}

func (errorLog) Println(v ...any) {
	klog.ErrorS(nil, "Metrics could not be gathered", "cause", fmt.Sprint(v...))
}
