package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// JobRequest asks for a run of a job out of turn. Of the same name, mode and
// collection one waits at a time.
type JobRequest struct {
	Name       string         `json:"name"`
	Mode       string         `json:"mode,omitempty"`
	Collection doc.Collection `json:"collection,omitempty"`
	At         time.Time      `json:"at"` // when it was asked for; zero: now
	ID         string         `json:"id"` // given by the store; tells it from a later one that asks for the same
}

// RequestJob leaves a request for whoever does the job, and gives it with its
// ID. It answers false, with the one that is there, when such a request waits
// already.
func (s *State) RequestJob(ctx context.Context, r JobRequest) (JobRequest, bool, error) {
	const doing = "requesting a job"
	if r.At.IsZero() {
		r.At = s.clock.Now()
	}
	r.At, r.ID = r.At.UTC().Truncate(time.Microsecond), newNonce()
	body, err := json.Marshal(r)
	if err != nil {
		return JobRequest{}, false, fmt.Errorf("%s: %w", doing, err)
	}
	item := stateKey(r.key())
	item[attrBody], item[attrOwner] = str(string(body)), str(r.ID)
	x := newExpression()
	x.require("attribute_not_exists(" + x.name(attrPK) + ")")
	found, ok, err := s.replace(ctx, doing, item, x)
	if err != nil || ok {
		return r, ok, err
	}
	waiting, err := decodeRequest(found)
	return waiting, false, err
}

// JobRequests are the requests for a job that wait, oldest first.
func (s *State) JobRequests(ctx context.Context, name string) ([]JobRequest, error) {
	items, err := s.list(ctx, "reading the requests for a job", kindRequest+name)
	if err != nil {
		return nil, err
	}
	requests := make([]JobRequest, len(items))
	for i, item := range items {
		if requests[i], err = decodeRequest(item); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(requests, func(a, b JobRequest) int { return a.At.Compare(b.At) })
	return requests, nil
}

// DropJobRequest removes a request, but not a later one that asks for the same.
// That there is none is no error.
func (s *State) DropJobRequest(ctx context.Context, r JobRequest) error {
	x := newExpression()
	x.require(x.name(attrOwner) + " = " + x.value(attrOwner, str(r.ID)))
	pk, sk := r.key()
	_, err := s.remove(ctx, "removing the request for a job", pk, sk, x)
	return err
}

// key is where the request waits. The mode is quoted, so that no two pairs of
// mode and collection have the same.
func (r JobRequest) key() (pk, sk string) {
	return kindRequest + r.Name, strconv.Quote(r.Mode) + string(r.Collection)
}

func decodeRequest(item map[string]types.AttributeValue) (JobRequest, error) {
	var r JobRequest
	if err := decodeBody(item, &r); err != nil {
		return JobRequest{}, fmt.Errorf("reading the request for a job: %w", err)
	}
	return r, nil
}
