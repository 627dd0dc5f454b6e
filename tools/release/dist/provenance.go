package dist

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Source says what a release is made of.
type Source struct {
	Version string
	// Commit is that of the tree, and Clean says that nothing in it had been changed.
	Commit string
	Clean  bool
	// Tools are the compilers and packages that built it, by name, with their versions.
	Tools map[string]string
}

type digests map[string]string

type resource struct {
	Name   string  `json:"name,omitempty"`
	URI    string  `json:"uri,omitempty"`
	Digest digests `json:"digest,omitempty"`
}

// statement is an in-toto statement of version 1, with the predicate of SLSA's provenance of version 1.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string         `json:"buildType"`
			ExternalParameters   map[string]any `json:"externalParameters"`
			ResolvedDependencies []resource     `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID      string            `json:"id"`
				Version map[string]string `json:"version"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://loadline.dev/make-release/v1"
)

// AddProvenance adds the statement of what all files so far were made of, and by what.
func (r Release) AddProvenance(source Source) error {
	var s statement
	s.Type, s.PredicateType = statementType, predicateType
	for _, name := range slices.Sorted(maps.Keys(r)) {
		s.Subject = append(s.Subject, resource{Name: name, Digest: digests{"sha256": hash(r[name])}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildType
	definition.ExternalParameters = map[string]any{"version": source.Version,
		"command": "make release VERSION=" + source.Version}
	commit := resource{Name: "source", Digest: digests{"gitCommit": source.Commit}}
	if !source.Clean {
		commit.Name = "source, with changes that are not committed"
	}
	definition.ResolvedDependencies = []resource{commit}
	s.Predicate.RunDetails.Builder.ID = buildType + "/by-hand"
	s.Predicate.RunDetails.Builder.Version = source.Tools
	content, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	r[provenance] = append(content, '\n')
	return nil
}

// CheckProvenance returns an error unless the statement names exactly the other files, with their hashes, and the
// version.
func (r Release) CheckProvenance(version string) error {
	var s statement
	if err := json.Unmarshal(r[provenance], &s); err != nil {
		return fmt.Errorf("%s: %w", provenance, err)
	}
	if s.Type != statementType || s.PredicateType != predicateType {
		return fmt.Errorf("%s is of type %q with %q", provenance, s.Type, s.PredicateType)
	}
	if got := s.Predicate.BuildDefinition.ExternalParameters["version"]; got != version {
		return fmt.Errorf("%s is about version %v, not %s", provenance, got, version)
	}
	named := map[string]bool{}
	for _, subject := range s.Subject {
		if content, ok := r[subject.Name]; !ok || hash(content) != subject.Digest["sha256"] {
			return fmt.Errorf("%s is about another %s", provenance, subject.Name)
		}
		named[subject.Name] = true
	}
	for name := range r {
		if name != provenance && !named[name] {
			return fmt.Errorf("%s does not say what %s was made of", provenance, name)
		}
	}
	return nil
}
