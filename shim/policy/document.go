package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	yamlnode "go.yaml.in/yaml/v3"
)

// OneDocument returns an error for YAML with a document behind the first one, unless it is empty: a decoder of one
// document would drop it without a word.
func OneDocument(data []byte) error {
	decoder := yamlnode.NewDecoder(bytes.NewReader(data))
	for i := 0; ; i++ {
		var document yamlnode.Node
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF) || err != nil && i == 0: // who decodes the first one reports its faults
			return nil
		case err != nil:
			return fmt.Errorf("behind the first YAML document: %w", err)
		case i > 0 && !isEmpty(&document):
			return fmt.Errorf("line %d: a second YAML document begins here, behind ---: there may be one only: join them, or "+
				"leave one out", document.Content[0].Line)
		}
	}
}

func isEmpty(document *yamlnode.Node) bool {
	return len(document.Content) == 0 || document.Content[0].ShortTag() == "!!null"
}
