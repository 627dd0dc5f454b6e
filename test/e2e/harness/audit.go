package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// auditPolicy notes who changes what, without the bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

func (c *Cluster) writeAuditPolicy() error {
	return os.WriteFile(c.path("audit-policy.yaml"), []byte(auditPolicy), 0o600)
}

func (c *Cluster) auditArgs() []string {
	return []string{"--audit-policy-file=" + c.path("audit-policy.yaml"), "--audit-log-path=" + c.path("audit.log"),
		"--audit-log-mode=blocking"}
}

// A Change is a request that was to change something, as the API server has noted it.
type Change struct {
	User, Verb string
	// Resource is that of the URL, with a subresource as "pods/eviction".
	Resource, Namespace, Name string
	// Code is the HTTP status of the answer.
	Code int
	// At is when the request came in.
	At time.Time
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s %s/%s: %d", c.Verb, c.Resource, c.Namespace, c.Name, c.Code)
}

// Changes returns the requests of a user that were to change something, in order. The cluster was started with Audit.
func (c *Cluster) Changes(user string) ([]Change, error) {
	file, err := os.Open(c.path("audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var changes []Change
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	lines.Split(wholeLines)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(user)) { // most are of others; tests ask again and again
			continue
		}
		var event struct {
			Verb           string
			User           struct{ Username string }
			ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus struct{ Code int }

			RequestReceivedTimestamp time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, err
		}
		if event.User.Username != user || event.ObjectRef.Resource == "selfsubjectaccessreviews" { // a question
			continue
		}
		change := Change{User: user, Verb: event.Verb, Resource: event.ObjectRef.Resource,
			Namespace: event.ObjectRef.Namespace,
			Name:      event.ObjectRef.Name, Code: event.ResponseStatus.Code, At: event.RequestReceivedTimestamp}
		if event.ObjectRef.Subresource != "" {
			change.Resource += "/" + event.ObjectRef.Subresource
		}
		changes = append(changes, change)
	}
	return changes, lines.Err()
}

// wholeLines splits into lines, but for a last one that the API server has not written to its end.
func wholeLines(data []byte, _ bool) (advance int, token []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	return 0, nil, nil
}
