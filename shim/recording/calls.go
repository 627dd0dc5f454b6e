// Package recording reads what an engine was given and asked: a file of calls, as `loadline plan --record` writes it.
package recording

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protodelim"

	"loadline.dev/shim/api/loadlinev1"
)

// maxCallBytes bounds one call: a request and an answer of 4 MiB each.
const maxCallBytes = 9 << 20

// ErrCut says that a recording ends within a call, as when the process that writes it is killed: the calls before it
// are whole.
var ErrCut = errors.New("the recording ends within a call, which is left out")

// Calls hands each call of a recording to visit, with its whole request. It ends with the first error of visit. Errors
// name the call. ErrCut is the last one.
func Calls(recording io.Reader, visit func(*loadlinev1.RecordedCall) error) error {
	in, requests := bufio.NewReader(recording), Requests{}
	limits := protodelim.UnmarshalOptions{MaxSize: maxCallBytes}
	for i := 0; ; i++ {
		call := &loadlinev1.RecordedCall{}
		err := limits.UnmarshalFrom(in, call)
		switch {
		case errors.Is(err, io.EOF) && i == 0:
			return errors.New("not a recording: it is empty")
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF) && i > 0:
			return ErrCut
		case err == nil:
			err = requests.Complete(call)
		}
		if err != nil {
			return fmt.Errorf("call %d: not a recording: %w", i, err)
		}
		if err := visit(call); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
}
