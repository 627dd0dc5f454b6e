package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"loadline.dev/shim/api/loadlinev1"
	"loadline.dev/shim/timewindow"
)

// The span that the engine simulates: its begin, its longest duration, and the most windows.
const (
	begins      = 1_699_833_600 // a Monday, 00:00 UTC
	longest     = 400 * 24 * time.Hour
	mostWindows = 16_384
	mostLines   = 64
)

const replacementWindows = "replacementWindows"

// takeWindows takes spec.settings.consolidation.replacementWindows out of a spec, which the message does not know, and
// returns the windows that they are while the engine simulates; nil: at any time.
func takeWindows(spec json.RawMessage) (json.RawMessage, *loadlinev1.TimeWindows, error) {
	var fields, settings, policy map[string]json.RawMessage
	if json.Unmarshal(spec, &fields) != nil || json.Unmarshal(fields["settings"], &settings) != nil ||
		json.Unmarshal(settings["consolidation"], &policy) != nil || policy[replacementWindows] == nil {
		return spec, nil, nil // its fault is reported with its field
	}
	windows, err := expand(policy[replacementWindows])
	if err == nil && policy["windows"] != nil {
		err = errors.New("has windows beside it: only one of them can be stated")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("spec.settings.consolidation.%s: %w", replacementWindows, err)
	}
	delete(policy, replacementWindows)
	if settings["consolidation"], err = json.Marshal(policy); err != nil {
		return nil, nil, err
	}
	if fields["settings"], err = json.Marshal(settings); err != nil {
		return nil, nil, err
	}
	rest, err := json.Marshal(fields)
	return rest, windows, err
}

// expand returns the windows of a list of cron schedules.
func expand(list json.RawMessage) (*loadlinev1.TimeWindows, error) {
	var texts []string
	if json.Unmarshal(list, &texts) != nil {
		return nil, errors.New("must be a list of texts such as \"0 22 * * 1-5 6h Europe/Berlin\"")
	}
	if len(texts) == 0 {
		return nil, nil
	}
	if len(texts) > mostLines {
		return nil, fmt.Errorf("%d are more than %d", len(texts), mostLines)
	}
	windows := &loadlinev1.TimeWindows{}
	for _, text := range texts {
		window, err := timewindow.Parse(text)
		if err != nil {
			return nil, err
		}
		begin := time.Unix(begins, 0)
		windows.Windows = append(windows.Windows, window.Between(begin, begin.Add(longest))...)
		if len(windows.Windows) > mostWindows {
			return nil, fmt.Errorf("%q: with those before it, it begins more than %d times within %d days", text, mostWindows,
				longest/(24*time.Hour))
		}
	}
	return windows, nil
}
