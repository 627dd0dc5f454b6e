package cloud

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MostNameBytes is how long the id of a group may be for the engine.
const MostNameBytes = 253

// IsPlain says whether the engine takes a name as it is: printable ASCII without spaces.
func IsPlain(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' })
}

// mostReadable is how much of an odd id is kept for people.
const mostReadable = 60

// plainID returns the id that a group has here: that of the provider, and where that is long or odd, what
// can be read of it, with a hash of the whole. The same id gets the same one in each process.
func plainID(id string) string {
	if len(id) <= MostNameBytes && IsPlain(id) {
		return id
	}
	readable := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return '_'
		}
		return c
	}, id)
	sum := sha256.Sum256([]byte(id))
	return readable[:min(len(readable), mostReadable)] + "~" + hex.EncodeToString(sum[:6])
}

// rawID returns the id by which the provider knows a group.
func (c *Client) rawID(group string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if raw, odd := c.odd[group]; odd {
		return raw
	}
	return group
}
