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

// Calls hands each call of a recording to visit. It ends with the first error of visit. Errors
// name the call.
func Calls(recording io.Reader, visit func(*loadlinev1.RecordedCall) error) error {
	in := bufio.NewReader(recording)
	limits := protodelim.UnmarshalOptions{MaxSize: maxCallBytes}
	for i := 0; ; i++ {
		call := &loadlinev1.RecordedCall{}
		if err := limits.UnmarshalFrom(in, call); errors.Is(err, io.EOF) {
			if i == 0 {
				return errors.New("not a recording: it is empty")
			}
			return nil
		} else if err != nil {
			return fmt.Errorf("call %d: not a recording: %w", i, err)
		}
		if err := visit(call); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
}
