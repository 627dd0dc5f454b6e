package source

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"loadline.dev/shim/internal/text"
	"loadline.dev/shim/usage/profile"
)

// amountIn reads an amount in the unit of profiles: a number of millicores or bytes, or a quantity of Kubernetes with a
// suffix that leaves no doubt, such as 250m of CPU and 1Gi of memory. 2k of CPU may be cores or millicores: it is none.
func amountIn(text string, of profile.Resource) (int64, Reason) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		if of == profile.CPU && strings.TrimRight(text, "num") == text {
			return 0, Unreadable
		}
		return addQuantity(0, text, of)
	}
	if of == profile.CPU {
		value /= 1000
	}
	return amountOf(value, of)
}

// timeLayouts are those of times that are no numbers. Without a zone they are UTC. Fractions of seconds are read too.
var timeLayouts = []string{time.RFC3339, time.DateTime, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07"}

// timeOf reads a time in seconds since 1970, rounded down.
func timeOf(value string) (int64, error) {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return seconds, nil
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && math.Abs(seconds) < 1<<62 {
		return int64(math.Floor(seconds)), nil
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, value); err == nil {
			return at.Unix(), nil
		}
	}
	return 0, fmt.Errorf("%q is neither a number of seconds since 1970 nor of RFC 3339", text.Bound(value, 64))
}

// year2000 is the earliest time that a number in another unit than seconds is taken for, in errors.
const year2000 = 946_684_800

// unitOf names the unit that a time has by the look of it, where it is later than the latest in seconds.
func unitOf(seconds, latest int64) string {
	for _, unit := range []struct {
		perSecond int64
		name      string
	}{{1e3, "milliseconds"}, {1e6, "microseconds"}, {1e9, "nanoseconds"}} {
		if at := seconds / unit.perSecond; seconds > latest && at >= year2000 && at <= latest {
			return ", which looks like " + unit.name
		}
	}
	return ""
}
