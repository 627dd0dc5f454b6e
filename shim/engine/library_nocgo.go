//go:build !cgo

package engine

import (
	"unsafe"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// library cannot be loaded in a build without cgo; sockets work there.
type library struct {
	version string
}

func loadLibrary(string) (*library, error) {
	return nil, status.Error(codes.Unimplemented,
		"engine library: this program was built without cgo; use unix:///path/to/socket")
}

func (l *library) create([]byte) (unsafe.Pointer, error) { return nil, nil }

func (l *library) destroy(unsafe.Pointer) {}

func (l *library) call(unsafe.Pointer, []byte, []byte, int64, func([]byte) error) error { return nil }
