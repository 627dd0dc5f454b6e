package extender

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
)

// maxBodiesBytes bounds the bytes of all bodies that are in memory at a time, and of what is made from them: four of
// the largest bodies. The buffer that a body outgrew takes as much again, so that all of it stays below half of the
// memory that the manifests grant.
const maxBodiesBytes = 4 * maxBodyBytes

// Memory for the shortest elements of a body, "{}," or `"a",`: a part of a pod takes up to some 900 bytes, and a
// list that grows has room for twice as many; a node its name in three lists, a set and the answer.
const (
	bytesOfPart = 2048
	bytesOfName = 128
	// fewElements is up to how many elements of a body are not counted: most bodies have fewer, and they take little.
	fewElements = 1000
)

// costOf returns what is made from a body beside it, at most; 0: little.
func costOf(body []byte) (cost int) {
	all := bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("{")) + bytes.Count(body, []byte("["))
	if all <= fewElements {
		return 0
	}
	err := splitObject(body, func(name string, value []byte) error {
		switch {
		case strings.EqualFold(name, "Pod"):
			cost += bytesOfPart * elements(value, -1)
		case strings.EqualFold(name, "Nodes"):
			cost += bytesOfName * elements(value, 2)
		case strings.EqualFold(name, "NodeNames"):
			cost += bytesOfName * elements(value, 1)
		}
		return nil
	})
	if err != nil { // whatever it is
		return bytesOfPart * all
	}
	return cost
}

// elements returns how many elements a value has, at most: those of lists and objects that stand in so many others; -1:
// at any depth.
func elements(value []byte, within int) (count int) {
	depth := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			size, err := stringSize(value[i:])
			if err != nil {
				return count
			}
			i += size - 1
		case '{', '[':
			if depth++; within < 0 || depth == within {
				count++
			}
		case '}', ']':
			depth--
		case ',':
			if within < 0 || depth == within {
				count++
			}
		}
	}
	return count
}

var errBodiesTooLarge = errors.New("the requests that are answered now are too large for one more")

// byteBudget counts bytes that are in use. Safe for concurrent use.
type byteBudget struct {
	limit int64
	held  atomic.Int64
}

// take takes note of bytes, unless they are too many.
func (b *byteBudget) take(bytes int) bool {
	if b.held.Add(int64(bytes)) > b.limit {
		b.held.Add(-int64(bytes))
		return false
	}
	return true
}

func (b *byteBudget) give(bytes int) { b.held.Add(-int64(bytes)) }

// countedReader counts what is read, not what a client announces: one that announces much and sends nothing takes
// nothing.
type countedReader struct {
	from   io.Reader
	budget *byteBudget
	taken  int
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if !r.budget.take(n) {
		return 0, errBodiesTooLarge
	}
	r.taken += n
	return n, err
}
