// Package store keeps profiles in ConfigMaps: shards of bounded size, each of which can be read without the others.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"loadline.dev/shim/usage/profile"
)

// Bounds on what is written and read.
const (
	// Shards is the number of ConfigMaps, MostShard the bytes of each: together 4 MiB.
	Shards    = 8
	MostShard = 512 << 10
	// MostWorkloads bounds the profiles of a shard: none is shorter than 62 bytes.
	MostWorkloads = MostShard / 62
	// mostText bounds namespaces, kinds and names. API servers take no longer ones.
	mostText = 253
)

// magic begins a shard, with the version of its form.
const magic = "loadline usage 2\n"

// steps is the number of steps from nothing to the peak of a day; unknown means an hour without samples.
const (
	steps   = 254
	unknown = 255
)

// Head is what a shard says of all of its profiles.
type Head struct {
	// Collected is when the profiles were worked out, CarriedUntil when those end to count that an earlier process has
	// collected, 0 where there are none; in seconds since 1970.
	Collected, CarriedUntil int64
	// Days and Percent are those of profile.Options.
	Days, Percent int64
}

// encodeHead begins a shard.
func encodeHead(head *Head, count int) []byte {
	out := []byte(magic)
	for _, number := range []int64{head.Collected, head.CarriedUntil, head.Days, head.Percent} {
		out = binary.AppendUvarint(out, uint64(number))
	}
	return binary.AppendUvarint(out, uint64(count))
}

// encodeProfile appends a profile. Amounts lose precision: each hour is kept as a share of the peak of the day, which
// is exact, in 254 steps, rounded up. So an amount is read as itself or more, by less than 1/254 of the peak.
func encodeProfile(out []byte, p *profile.Profile) []byte {
	out = appendText(appendText(appendText(out, p.Workload.Namespace), p.Workload.Kind), p.Workload.Name)
	for _, number := range []int64{p.Samples, p.Days, p.First, p.Last} {
		out = binary.AppendUvarint(out, uint64(number))
	}
	for of := range p.Day {
		peak, _ := p.Day[of].Peak()
		out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(p.Limits[of])), uint64(max(peak, 0)))
		for _, amount := range p.Day[of] {
			out = append(out, shareOf(amount, peak))
		}
	}
	return out
}

// shareOf returns the step of an amount, rounded up.
func shareOf(amount, peak int64) byte {
	switch {
	case amount == profile.Unknown:
		return unknown
	case amount == 0:
		return 0
	}
	high, low := bits.Mul64(uint64(amount), steps)
	low, carry := bits.Add64(low, uint64(peak)-1, 0)
	quotient, _ := bits.Div64(high+carry, low, uint64(peak))
	return byte(quotient)
}

// amountOf returns the amount of a step, rounded down: it is whole, and so still no less than the one of shareOf.
func amountOf(share byte, peak int64) int64 {
	if share == unknown {
		return profile.Unknown
	}
	high, low := bits.Mul64(uint64(share), uint64(peak))
	quotient, _ := bits.Div64(high, low, steps)
	return int64(quotient)
}

// seal ends a shard by the digest of all that is before.
func seal(shard []byte) []byte {
	digest := sha256.Sum256(shard)
	return append(shard, digest[:]...)
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

// decoder reads a shard. After the first fault it reads nothing.
type decoder struct {
	data  []byte
	fault error
}

func (d *decoder) fail(format string, args ...any) {
	if d.fault == nil {
		d.fault = fmt.Errorf(format, args...)
	}
	d.data = nil
}

// number reads a number of at most 2^62.
func (d *decoder) number() int64 {
	n, size := binary.Uvarint(d.data)
	if size <= 0 || n > 1<<62 {
		d.fail("a number is cut short or above 2^62")
		return 0
	}
	d.data = d.data[size:]
	return int64(n)
}

func (d *decoder) bytes(count int64) []byte {
	if count > int64(len(d.data)) {
		d.fail("it is cut short")
		return nil
	}
	out := d.data[:count]
	d.data = d.data[count:]
	return out
}

func (d *decoder) text(what string) string {
	size := d.number()
	if size > mostText {
		d.fail("%s has %d bytes, at most %d are allowed", what, size, mostText)
		return ""
	}
	text := string(d.bytes(size))
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '@' }) || text == "" {
		d.fail("%s is %q, which no API server takes or no view", what, text)
	}
	return text
}

// Decode reads a shard. Whoever wrote it, the profiles have unique workloads in their order, amounts in [0, 2^62] or
// Unknown, and bounded names.
func Decode(shard []byte) (Head, []profile.Profile, error) {
	var head Head
	if len(shard) > MostShard {
		return head, nil, fmt.Errorf("it has %d bytes, at most %d are read", len(shard), MostShard)
	}
	if !bytes.HasPrefix(shard, []byte(magic)) || len(shard) < len(magic)+sha256.Size {
		return head, nil, errors.New("it does not begin as profiles of this version do")
	}
	content := shard[:len(shard)-sha256.Size]
	if digest := sha256.Sum256(content); !bytes.Equal(digest[:], shard[len(content):]) {
		return head, nil, errors.New("its digest does not match")
	}
	d := &decoder{data: content[len(magic):]}
	head = Head{Collected: d.number(), CarriedUntil: d.number(), Days: d.number(), Percent: d.number()}
	count := d.number()
	if count > MostWorkloads {
		d.fail("it has %d profiles, at most %d are read", count, MostWorkloads)
	}
	var out []profile.Profile
	for range count {
		p := d.profile()
		if len(out) > 0 && d.fault == nil && p.Workload.Compare(out[len(out)-1].Workload) <= 0 {
			d.fail("%v is not in order", p.Workload)
		}
		if d.fault != nil {
			return head, nil, d.fault
		}
		out = append(out, p)
	}
	if len(d.data) > 0 {
		d.fail("%d bytes follow the last profile", len(d.data))
	}
	if d.fault != nil {
		return head, nil, d.fault
	}
	return head, out, nil
}

func (d *decoder) profile() (p profile.Profile) {
	p.Workload = profile.Workload{Namespace: d.text("a namespace"), Kind: d.text("a kind"),
		Name: d.text("a name")}
	p.Samples, p.Days, p.First, p.Last = d.number(), d.number(), d.number(), d.number()
	for of := range p.Day {
		p.Limits[of] = d.number()
		peak := d.number()
		for hour, share := range d.bytes(profile.Hours) {
			p.Day[of][hour] = amountOf(share, peak)
		}
	}
	return p
}
