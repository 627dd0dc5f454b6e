package view

// shape is what pods that differ only in name, UID and node have in common.
type shape struct {
	id      int32
	bytes   string
	refs    int    // pods that have it
	known   bool   // the engine holds it under this id
	batch   uint64 // the last batch that carried it
	retired bool   // listed in shapes.retired
	since   uint64 // with retired: the last batch built before the last pod went
}

// size estimates what the shape takes in a batch.
func (s *shape) size() int { return len(s.bytes) + 16 }

// shapes numbers the shapes of a view, densely from 0.
//
// An id must not get another content while the engine has a pod that refers to it. So a shape without pods
// keeps its id until a batch that was built later, and that left nothing out, is known to have arrived.
type shapes struct {
	byBytes map[string]*shape
	retired []*shape
	free    []int32
	next    int32
}

// acquire returns the shape of these bytes, with one more pod.
func (s *shapes) acquire(bytes []byte) *shape {
	have, ok := s.byBytes[string(bytes)]
	if !ok {
		have = &shape{id: s.number(), bytes: string(bytes)}
		if s.byBytes == nil {
			s.byBytes = map[string]*shape{}
		}
		s.byBytes[have.bytes] = have
	}
	have.refs++
	return have
}

func (s *shapes) number() int32 {
	if n := len(s.free); n > 0 {
		id := s.free[n-1]
		s.free = s.free[:n-1]
		return id
	}
	s.next++
	return s.next - 1
}

// release takes one pod off a shape. `batch` is the number of the last batch built.
func (s *shapes) release(have *shape, batch uint64) {
	have.refs--
	if have.refs > 0 {
		return
	}
	have.since = batch
	if !have.retired {
		have.retired = true
		s.retired = append(s.retired, have)
	}
}

// collect gives back the ids of shapes that had no pod any more when a batch was built.
func (s *shapes) collect(batch uint64) {
	kept := s.retired[:0]
	for _, have := range s.retired {
		switch {
		case have.refs > 0:
			have.retired = false
		case have.since < batch:
			delete(s.byBytes, have.bytes)
			s.free = append(s.free, have.id)
		default:
			kept = append(kept, have)
		}
	}
	clear(s.retired[len(kept):])
	s.retired = kept
}

// forget is for an engine that holds nothing: no shape is known, and no id is bound.
func (s *shapes) forget() {
	s.collect(^uint64(0))
	for _, have := range s.byBytes {
		have.known = false
		have.batch = 0
	}
}
