package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// JobRecord is what a job keeps about itself between its runs, such as how far
// it has come and how its last run ended.
type JobRecord struct {
	Name  string
	Fence int64           // token of the lease of the run that wrote it
	Body  json.RawMessage // at most MaxJobBody bytes
}

// MaxJobBody is the longest body of a job's record in bytes. An item of DynamoDB
// has at most 400 KB, name and other attributes included.
const MaxJobBody = 350 << 10

// Job is the record of a job; false when there is none.
func (s *State) Job(ctx context.Context, name string) (JobRecord, bool, error) {
	item, err := s.get(ctx, "reading the record of a job", kindJob, name, true)
	if err != nil || len(item) == 0 {
		return JobRecord{}, false, err
	}
	r, err := decodeJob(item)
	return r, err == nil, err
}

// Jobs are the records of all jobs, in the order of their names.
func (s *State) Jobs(ctx context.Context) ([]JobRecord, error) {
	items, err := s.list(ctx, "reading the records of jobs", kindJob)
	if err != nil {
		return nil, err
	}
	records := make([]JobRecord, len(items))
	for i, item := range items {
		if records[i], err = decodeJob(item); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// PutJob replaces the record of a job. It answers false, and changes nothing,
// when one of a higher fence stands there. The error is of kind DocumentTooLarge
// for a body that is too long.
func (s *State) PutJob(ctx context.Context, r JobRecord) (bool, error) {
	if len(r.Body) > MaxJobBody {
		return false, doc.Errorf(doc.DocumentTooLarge, "the record of a job has at most %d bytes", MaxJobBody).
			With("limit", MaxJobBody).With("actual", len(r.Body))
	}
	if !json.Valid(r.Body) {
		return false, fmt.Errorf("writing the record of a job: its body is no JSON")
	}
	item := stateKey(kindJob, r.Name)
	item[attrBody] = str(string(r.Body))
	return s.fenced(ctx, "writing the record of a job", item, r.Fence)
}

func decodeJob(item map[string]types.AttributeValue) (JobRecord, error) {
	r := JobRecord{Fence: integer(item[attrFence])}
	r.Name, _ = text(item[attrSK])
	if err := decodeBody(item, &r.Body); err != nil {
		return JobRecord{}, fmt.Errorf("reading the record of a job: %w", err)
	}
	return r, nil
}
