// Package engine connects to a Loadline engine: in this process, through libloadline.so, or in loadlined,
// through gRPC on a unix socket. The generated clients of package loadlinev1 work on both.
package engine

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"

	"loadline.dev/shim/api/loadlinev1"
)

// Conn is a connection to an engine. Safe for concurrent use.
type Conn interface {
	grpc.ClientConnInterface
	io.Closer
}

const inProcess = "inprocess"

// Open connects to the engine at an address:
//
//	inprocess                            an engine of its own in this process; libloadline.so is searched for
//	inprocess:///path/to/libloadline.so  the same, from that file
//	unix:///path/to/socket               loadlined; the connection is made when it is first needed
//
// The library is the file that LOADLINE_LIBRARY names; without that variable it is searched for in the folder of the
// executable, in ../lib beside it, and in the search path of the system, in this order.
func Open(address string) (Conn, error) { return OpenWith(address, nil) }

// AddressError is returned for an address that is none of an engine.
type AddressError struct{ Address string }

func (e *AddressError) Error() string {
	return fmt.Sprintf("engine address %q: must be inprocess, inprocess:///path/to/libloadline.so or "+
		"unix:///path/to/socket", e.Address)
}

// OpenWith is Open with a configuration for an engine in this process; nil: the defaults. An engine in loadlined has
// the configuration that loadlined was started with.
func OpenWith(address string, config *loadlinev1.EngineConfig) (Conn, error) {
	scheme, path, hasPath := strings.Cut(address, "://")
	switch {
	case address == inProcess:
		return openInProcess("", config)
	case scheme == inProcess && hasPath && strings.HasPrefix(path, "/"):
		return openInProcess(path, config)
	case scheme == "unix" && hasPath && strings.HasPrefix(path, "/"):
		return openSocket(path)
	}
	return nil, &AddressError{address}
}
