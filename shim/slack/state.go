package slack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/internal/wholefile"
	"loadline.dev/shim/nodegroup"
	"loadline.dev/shim/policy"
)

// StateKind is the kind of a file with what a plan of slack left for the next one.
const StateKind = "SlackState"

// stateFile is such a file. Its state is a message SlackState.
type stateFile struct {
	metav1.TypeMeta `json:",inline"`
	State           json.RawMessage `json:"state"`
}

// LoadState reads a file of kind SlackState. Where there is none, nothing was planned yet.
func LoadState(name string) (*loadlinev1.SlackState, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &loadlinev1.SlackState{NextId: 1}, nil
	}
	if err != nil {
		return nil, err
	}
	state, err := parseState(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return state, nil
}

func parseState(data []byte) (*loadlinev1.SlackState, error) {
	var read stateFile
	if err := policy.DecodeStrict(data, &read); err != nil {
		return nil, err
	}
	if read.APIVersion != nodegroup.APIVersion || read.Kind != StateKind {
		return nil, fmt.Errorf("apiVersion %q, kind %q: must be %s, %s", read.APIVersion, read.Kind,
			nodegroup.APIVersion, StateKind)
	}
	if len(read.State) == 0 {
		return nil, errors.New("state: missing")
	}
	state := &loadlinev1.SlackState{}
	if err := protojson.Unmarshal(read.State, state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return state, nil
}

// SaveState writes what LoadState reads, the same bytes of equal states.
func SaveState(name string, state *loadlinev1.SlackState) error {
	message, err := protojson.Marshal(state)
	if err != nil {
		return err
	}
	data, err := json.Marshal(stateFile{metav1.TypeMeta{APIVersion: nodegroup.APIVersion, Kind: StateKind}, message})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		return err
	}
	text.WriteByte('\n')
	return wholefile.Write(name, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
}
