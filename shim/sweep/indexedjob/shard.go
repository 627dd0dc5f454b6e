package indexedjob

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"loadline.dev/shim/sweep"
)

// Shard is one index of the Job.
type Shard struct {
	// Inputs and RowsFile are files that the Job has mounted.
	Inputs, Digest, RowsFile string
	PerShard, Index          int
	// Job, UID and Namespace are those of the Job.
	Job, UID, Namespace string
	Version             string
}

// Plan returns the sweep, and the rows that are the shard's.
func (s *Shard) Plan() (*sweep.Plan, []int, error) {
	packed, err := os.Open(s.Inputs)
	if err != nil {
		return nil, nil, err
	}
	defer packed.Close()
	plan, err := sweep.ReadBundle(bufio.NewReader(packed), s.Digest)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.Inputs, err)
	}
	ranges, err := os.ReadFile(s.RowsFile)
	if err != nil {
		return nil, nil, err
	}
	rows, err := parseRanges(string(ranges), plan.Rows())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.RowsFile, err)
	}
	j := Job{Rows: rows, PerShard: s.PerShard}
	if s.PerShard < 1 || s.Index < 0 || s.Index >= j.Shards() {
		return nil, nil, fmt.Errorf("index %d: there are not so many shards of %d rows", s.Index, s.PerShard)
	}
	return plan, j.Of(s.Index), nil
}

// resultName is the ConfigMap that has the rows of an index.
func resultName(job string, index int) string { return job + "-" + strconv.Itoa(index) }

// Leave writes the rows to the cluster. One that is there already was written by this index before it was killed: the
// same inputs have the same rows.
func (s *Shard) Leave(ctx context.Context, client kubernetes.Interface, rows []*sweep.Row) error {
	packed, err := packRows(rows)
	if err != nil {
		return err
	}
	object := &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: resultName(s.Job, s.Index), Namespace: s.Namespace,
			Labels: map[string]string{jobLabel: s.Job}, Annotations: map[string]string{versionNote: s.Version},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: s.Job, UID: types.UID(s.UID)}}},
		Immutable: new(true), BinaryData: map[string][]byte{"rows.gz": packed}}
	_, err = client.CoreV1().ConfigMaps(s.Namespace).Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func packRows(rows []*sweep.Row) ([]byte, error) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	lines := json.NewEncoder(w)
	for _, row := range rows {
		if err := lines.Encode(row); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// maxResultBytes is the most that the rows of a shard may unpack to.
const maxResultBytes = 64 << 20

// unpackRows returns the rows of a result, which must be these.
func unpackRows(object *v1.ConfigMap, want []int) ([]*sweep.Row, error) {
	r, err := gzip.NewReader(bytes.NewReader(object.BinaryData["rows.gz"]))
	if err != nil {
		return nil, err
	}
	var rows []*sweep.Row
	for lines := json.NewDecoder(io.LimitReader(r, maxResultBytes)); ; {
		row := &sweep.Row{}
		if err := lines.Decode(row); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if len(rows) == len(want) || row.Row != want[len(rows)] {
			return nil, fmt.Errorf("row %d is none of the shard's, or out of order", row.Row)
		}
		rows = append(rows, row)
	}
	if len(rows) < len(want) {
		return nil, fmt.Errorf("%d rows, and there should be %d", len(rows), len(want))
	}
	return rows, nil
}
