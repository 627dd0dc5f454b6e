package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"loadline.dev/shim/usage/profile"
)

// takeProfiles takes spec.profiles, a file of `loadline usage --output`, out of a spec, and puts its hours in place of
// use.owner of workloads, which is NAMESPACE/KIND/NAME.
func takeProfiles(spec json.RawMessage, read func(string) ([]byte, error)) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	var workloads []map[string]json.RawMessage
	if json.Unmarshal(spec, &fields) != nil || json.Unmarshal(fields["workloads"], &workloads) != nil {
		return spec, nil // its fault is reported with its field
	}
	profiles, err := readProfiles(fields["profiles"], read)
	if err != nil {
		return nil, fmt.Errorf("spec.profiles: %w", err)
	}
	delete(fields, "profiles")
	found := false
	for i, workload := range workloads {
		var use map[string]json.RawMessage
		if json.Unmarshal(workload["use"], &use) != nil || use["owner"] == nil {
			continue
		}
		if err := useOfOwner(use, profiles); err != nil {
			return nil, fmt.Errorf("spec.workloads[%d].use.owner: %w", i, err)
		}
		if workload["use"], err = json.Marshal(use); err != nil {
			return nil, err
		}
		found = true
	}
	if found {
		if fields["workloads"], err = json.Marshal(workloads); err != nil {
			return nil, err
		}
	}
	return json.Marshal(fields)
}

// readProfiles reads the file that a field names, by owner; nil: there is no such field.
func readProfiles(field json.RawMessage, read func(string) ([]byte, error)) (map[string]*profile.Profile, error) {
	if field == nil {
		return nil, nil
	}
	var file string
	if err := json.Unmarshal(field, &file); err != nil {
		return nil, errors.New("must be the name of a file")
	}
	content, err := read(file)
	if err != nil {
		return nil, err
	}
	table, err := profile.ReadTable(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	profiles := map[string]*profile.Profile{}
	for i := range table {
		of := table[i].Workload
		profiles[of.Namespace+"/"+of.Kind+"/"+of.Name] = &table[i]
	}
	return profiles, nil
}

// useOfOwner puts the hours of its profile in place of an owner.
func useOfOwner(use map[string]json.RawMessage, profiles map[string]*profile.Profile) error {
	var owner string
	if err := json.Unmarshal(use["owner"], &owner); err != nil {
		return errors.New("must be NAMESPACE/KIND/NAME")
	}
	of := profiles[owner]
	if of == nil {
		return fmt.Errorf("spec.profiles has no %q", owner)
	}
	delete(use, "owner")
	for resource, field := range map[profile.Resource]string{profile.CPU: "cpuMilli", profile.Memory: "memoryBytes"} {
		hours := make([]int64, profile.Hours)
		for hour, amount := range of.Day[resource] {
			if amount != profile.Unknown {
				hours[hour] = max(amount, 1) // 0 would not be known
			}
		}
		content, err := json.Marshal(hours)
		if err != nil {
			return err
		}
		use[field] = content
	}
	return nil
}
