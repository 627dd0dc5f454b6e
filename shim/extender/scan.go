package extender

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Nearly all of a request is a list of node names, and all of an answer. encoding/json looks at each byte twice
// through a table of functions, which for 500 names costs more than the question to the engine. What follows reads and
// writes the lists directly, and leaves everything else to encoding/json: the pod, names with escapes, errors.

// errShape says that something is not of the shape that is read directly. encoding/json then says what is wrong.
var errShape = errors.New("unexpected JSON")

// splitObject returns the values of an object by name. It checks only what it needs to find where a value ends: the
// values are for encoding/json, or for nobody.
func splitObject(data []byte, field func(name string, value []byte) error) error {
	rest, ok := bytes.CutPrefix(trimSpace(data), []byte("{"))
	if !ok {
		return errShape
	}
	rest = trimSpace(rest)
	for first := true; ; first = false {
		if after, end := bytes.CutPrefix(rest, []byte("}")); end {
			if len(trimSpace(after)) > 0 {
				return errShape
			}
			return nil
		}
		if !first {
			if rest, ok = bytes.CutPrefix(rest, []byte(",")); !ok {
				return errShape
			}
			rest = trimSpace(rest)
		}
		nameSize, err := plainSize(rest)
		if err != nil {
			return err
		}
		name := string(rest[1 : nameSize-1])
		if rest, ok = bytes.CutPrefix(trimSpace(rest[nameSize:]), []byte(":")); !ok {
			return errShape
		}
		rest = trimSpace(rest)
		size, err := valueSize(rest)
		if err != nil {
			return err
		}
		if err := field(name, rest[:size]); err != nil {
			return err
		}
		rest = trimSpace(rest[size:])
	}
}

// valueSize returns how many bytes the value at the start of data takes.
func valueSize(data []byte) (int, error) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			size, err := stringSize(data[i:])
			if err != nil {
				return 0, err
			}
			i += size - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth > 0 {
				continue
			}
			// A number or a word ends where something else begins.
			size := bytes.IndexAny(data[i:], ",}] \t\r\n")
			if size <= 0 {
				return 0, errShape
			}
			i += size - 1
		}
		if depth <= 0 {
			if depth < 0 {
				return 0, errShape
			}
			return i + 1, nil
		}
	}
	return 0, errShape
}

// stringSize returns how many bytes the string at the start of data takes, quotes included.
func stringSize(data []byte) (int, error) {
	for i := 1; ; {
		next := bytes.IndexByte(data[i:], '"')
		if next < 0 {
			return 0, errShape
		}
		end := i + next
		backslashes := 0
		for data[end-1-backslashes] == '\\' { // ends at the opening quote at the latest
			backslashes++
		}
		if backslashes%2 == 0 {
			return end + 1, nil
		}
		i = end + 1
	}
}

// plainSize returns how many bytes a string of printable ASCII without escapes takes, which a node name is.
func plainSize[T []byte | string](data T) (int, error) {
	if len(data) == 0 || data[0] != '"' {
		return 0, errShape
	}
	for i := 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1, nil
		case c < ' ' || c >= utf8.RuneSelf || c == '\\':
			return 0, errShape
		}
	}
	return 0, errShape
}

// plainStrings reads a list of such strings. They share the memory of one.
func plainStrings(data []byte) ([]string, error) {
	rest, ok := strings.CutPrefix(string(data), "[")
	if !ok {
		return nil, errShape
	}
	if rest = trimSpace(rest); rest == "]" {
		return []string{}, nil
	}
	texts := make([]string, 0, strings.Count(rest, ",")+1)
	for {
		size, err := plainSize(rest)
		if err != nil {
			return nil, err
		}
		texts = append(texts, rest[1:size-1])
		if rest = trimSpace(rest[size:]); rest == "]" {
			return texts, nil
		}
		if rest, ok = strings.CutPrefix(rest, ","); !ok {
			return nil, errShape
		}
		rest = trimSpace(rest)
	}
}

// trimSpace drops what JSON allows between its parts.
func trimSpace[T []byte | string](data T) T {
	for len(data) > 0 && (data[0] == ' ' || data[0] == '\t' || data[0] == '\r' || data[0] == '\n') {
		data = data[1:]
	}
	return data
}

// decodeSplit decodes arguments with the names read directly. It fails with errShape where that does not work.
func decodeSplit(body []byte) (args arguments, err error) {
	err = splitObject(body, func(name string, value []byte) error {
		switch {
		case strings.EqualFold(name, "Pod"):
			return json.Unmarshal(value, &args.Pod)
		case strings.EqualFold(name, "Nodes"):
			return json.Unmarshal(value, &args.Nodes)
		case strings.EqualFold(name, "NodeNames"):
			names, err := plainStrings(value)
			if err != nil {
				return json.Unmarshal(value, &args.NodeNames)
			}
			args.NodeNames = names
		}
		return nil
	})
	return args, err
}

// appendPriorities writes an answer as encoding/json does.
func appendPriorities(b []byte, list extenderv1.HostPriorityList) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"Host":`...)
		b = appendString(b, list[i].Host)
		b = append(b, `,"Score":`...)
		b = append(strconv.AppendInt(b, list[i].Score, 10), '}')
	}
	return append(b, ']')
}

// plainByte marks the characters that encoding/json writes as they are: printable ASCII but for those that matter
// to JSON or HTML.
var plainByte = func() (plain [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		plain[c] = strings.IndexByte(`"\<>&`, c) < 0
	}
	return plain
}()

func appendString(b []byte, text string) []byte {
	for i := range len(text) {
		if !plainByte[text[i]] {
			quoted, _ := json.Marshal(text) // a string always encodes
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
