package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
)

// DeadLetters are the messages that were given up: a sqsqueue.DeadLetters.
type DeadLetters interface {
	Counts(ctx context.Context) (pipeline.DeadCounts, error)
	// Look shows messages and leaves them where they are.
	Look(ctx context.Context, limit int) ([]pipeline.DeadLetter, error)
	// Redrive sends what is in messages again and removes them; with discard it
	// removes also those in which nothing can be read.
	Redrive(ctx context.Context, limit int, discard bool) (pipeline.Redriven, error)
}

const (
	standardLetters = 25
	// largestLetters bounds what is taken from a queue to be looked at: of 100
	// messages with 200 KB a function has 20 MB in memory.
	largestLetters = 100
	// largestRedrive bounds a redrive: ten messages a call of SQS, three calls
	// for each ten.
	largestRedrive = 1000
)

// letters makes what SQS did not do an error for clients.
func letters(err error) error {
	if err == nil {
		return nil
	}
	return doc.Errorf(doc.Unavailable, "the queues of dead letters do not answer as they should; asking again does no harm").Because(err)
}

// listDeadLetters answers GET /dead-letters.
func (a *admin) listDeadLetters(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only("limit"); err != nil {
		return nil, err
	}
	limit, err := c.query.limit(standardLetters, largestLetters)
	if err != nil {
		return nil, err
	}
	counts, err := a.letters.Counts(ctx)
	if err != nil {
		return nil, letters(err)
	}
	found, err := a.letters.Look(ctx, limit)
	if err != nil {
		return nil, letters(err)
	}
	left := newBudget(2048)
	body := append([]byte(nil), `{"messages":[`...)
	for i, letter := range found {
		begin := len(body)
		if i > 0 {
			body = append(body, ',')
		}
		body = appendLetter(body, letter)
		if !left.take(body[begin:]) {
			body = body[:begin] // what is not shown stays where it is, like all others
			break
		}
	}
	body = append(body, `],"counts":{"signals":`...)
	body = strconv.AppendInt(body, int64(counts.Signals), 10)
	body = append(body, `,"relay":`...)
	body = strconv.AppendInt(body, int64(counts.Relay), 10)
	return reply(http.StatusOK, typeJSON, append(body, "}}"...)), nil
}

func appendLetter(dst []byte, letter pipeline.DeadLetter) []byte {
	dst = append(dst, `{"queue":`...)
	dst = appendText(dst, letter.Queue)
	dst = append(dst, `,"id":`...)
	dst = appendText(dst, letter.ID)
	dst = append(dst, `,"sent":`...)
	if letter.Sent.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = appendTime(dst, letter.Sent)
	}
	dst = append(dst, `,"receives":`...)
	dst = strconv.AppendInt(dst, int64(letter.Receives), 10)
	if letter.Unreadable != "" {
		dst = append(dst, `,"unreadable":`...)
		return append(appendText(dst, letter.Unreadable), '}')
	}
	dst = append(dst, `,"signals":[`...)
	for i, s := range letter.Signals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendStanding(dst, s.ID, s.Version), '}')
	}
	return append(dst, "]}"...)
}

// redriveDeadLetters answers POST /dead-letters/redrive. The body is optional:
// {"limit":n,"discard":true}.
func (a *admin) redriveDeadLetters(ctx context.Context, c *call) (*Response, error) {
	if err := c.query.only(); err != nil {
		return nil, err
	}
	limit, discard := largestRedrive, false
	if len(c.Body) > 0 {
		if err := wantMediaType(c.Header, typeJSON); err != nil {
			return nil, err
		}
		object, err := readObject(c.Body, doc.InvalidRequest, "limit", "discard")
		if err != nil {
			return nil, err
		}
		if given, has := object["limit"]; has {
			number, _ := given.(json.Number)
			n, err := strconv.Atoi(string(number))
			if err != nil || n < 1 || n > largestRedrive {
				return nil, at(doc.Errorf(doc.InvalidRequest, "limit is a whole number from 1 to %d", largestRedrive).With("limit", largestRedrive), "/limit")
			}
			limit = n
		}
		if given, has := object["discard"]; has {
			var ok bool
			if discard, ok = given.(bool); !ok {
				return nil, at(doc.Errorf(doc.InvalidRequest, "discard is true or false"), "/discard")
			}
		}
	}
	done, err := a.letters.Redrive(ctx, limit, discard)
	if err != nil {
		return nil, letters(err)
	}
	body, err := json.Marshal(struct {
		Moved     int `json:"moved"`
		Discarded int `json:"discarded"`
		Remaining int `json:"remaining"`
	}{done.Moved, done.Discarded, done.Remaining})
	if err != nil {
		return nil, fmt.Errorf("writing the answer about dead letters: %w", err)
	}
	return reply(http.StatusOK, typeJSON, body), nil
}
