package usage

import (
	"context"
	"errors"
	"time"

	"loadline.dev/shim/usage/source"
)

// ownersPatience is how long a single run waits until the pods are listed.
const ownersPatience = time.Minute

// Once asks once for all that there is. It returns the time that the profiles are of: now, or the newest of a file.
func (c *Collector) Once(ctx context.Context, now time.Time) (time.Time, error) {
	if file, is := c.source.(source.File); is {
		newest, err := file.Newest()
		if err != nil {
			return now, err
		}
		return time.Unix(newest, 0), c.Collect(ctx, newest-int64(c.options.Profiles.Days)*86400+1, newest+1)
	}
	_, err := c.Round(ctx, now)
	for end := now.Add(ownersPatience); errors.Is(err, source.ErrNotListed) && time.Now().Before(end) &&
		ctx.Err() == nil; {
		time.Sleep(time.Second)
		_, err = c.Round(ctx, now)
	}
	if err == nil && len(c.Profiles(now)) == 0 {
		err = c.left.noProfiles()
	}
	return now, err
}

// Collect asks once for all of [from, to), in seconds since 1970, and tells which samples were left out. It is an error
// if all were.
func (c *Collector) Collect(ctx context.Context, from, to int64) error {
	out, err := c.ask(ctx, from, to, c.samples.Add)
	c.report()
	if err == nil && out.Samples == 0 {
		err = c.left.noProfiles()
	}
	return err
}
