package store

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/doc"
)

// maxReasonBytes bounds the reason that is kept of a quarantine.
const maxReasonBytes = 2000

// RecordQuarantine notes that a version of a document could not be indexed in
// full. Another note of the same version adds q.Attempts (at least one) to it
// and keeps its Since; one of a newer version replaces it; an older version is
// not noted.
func (s *State) RecordQuarantine(ctx context.Context, q doc.Quarantined) error {
	const doing = "recording a quarantine"
	pk, sk := kindQuarantine+string(q.Collection), string(q.ID)
	since := q.Since
	if since.IsZero() {
		since = s.clock.Now()
	}
	attempts := max(q.Attempts, 1)
	note := func() *expression {
		x := newExpression()
		x.assign(attrReason, str(cutText(q.Reason, maxReasonBytes)))
		x.assign(attrPartial, &types.AttributeValueMemberBOOL{Value: q.Partial})
		return x
	}
	// Each of the two requests is refused where the other one applies, so a
	// second round is needed only when somebody was in between. A repetition
	// after a lost answer may count an attempt twice, which harms nobody.
	for range maxRounds {
		x := note()
		x.set = append(x.set, x.name(attrAttempts)+" = "+x.name(attrAttempts)+" + "+x.value(attrAttempts, num(attempts)))
		x.require(x.name(attrVersion) + " = " + x.value(attrVersion, num(q.Version)))
		_, found, ok, err := s.update(ctx, doing, pk, sk, x)
		if err != nil || ok {
			return err
		}
		if doc.Version(integer(found[attrVersion])) > q.Version {
			return nil
		}
		x = note()
		x.assign(attrVersion, num(q.Version))
		x.assign(attrAttempts, num(attempts))
		x.assign(attrSince, num(since.UnixMicro()))
		x.require("NOT " + x.name(attrVersion) + " >= " + x.value(attrVersion, num(q.Version)))
		_, _, ok, err = s.update(ctx, doing, pk, sk, x)
		if err != nil || ok {
			return err
		}
	}
	return doc.Errorf(doc.Throttled, "too many writers record the same quarantine at once")
}

// ClearQuarantine removes the note about a document unless it is about a version
// above upTo. That there is none is no error.
func (s *State) ClearQuarantine(ctx context.Context, c doc.Collection, id doc.ID, upTo doc.Version) error {
	x := newExpression()
	x.require("NOT " + x.name(attrVersion) + " > " + x.value(attrVersion, num(upTo)))
	_, err := s.remove(ctx, "clearing a quarantine", kindQuarantine+string(c), string(id), x)
	return err
}

// Quarantine gives the notes about those of the ids that have one.
func (s *State) Quarantine(ctx context.Context, ids []doc.ID) (map[doc.ID]doc.Quarantined, error) {
	notes := map[doc.ID]doc.Quarantined{}
	ids = distinct(ids)
	for at := 0; at < len(ids); at += maxBatch {
		var keys []map[string]types.AttributeValue
		for _, id := range ids[at:min(at+maxBatch, len(ids))] {
			keys = append(keys, stateKey(kindQuarantine+string(id.Collection()), string(id)))
		}
		_, err := s.engine.readAll(ctx, "reading the quarantine", s.table, types.KeysAndAttributes{Keys: keys}, func(item map[string]types.AttributeValue) {
			q := decodeQuarantined(item)
			notes[q.ID] = q
		})
		if err != nil {
			return nil, err
		}
	}
	return notes, nil
}

func decodeQuarantined(item map[string]types.AttributeValue) doc.Quarantined {
	sk, _ := text(item[attrSK])
	q := doc.Quarantined{
		ID:         doc.ID(sk),
		Collection: doc.ID(sk).Collection(),
		Version:    doc.Version(integer(item[attrVersion])),
		Attempts:   int(integer(item[attrAttempts])),
		Since:      micros(item[attrSince]),
	}
	q.Reason, _ = text(item[attrReason])
	if b, ok := item[attrPartial].(*types.AttributeValueMemberBOOL); ok {
		q.Partial = b.Value
	}
	return q
}

// CountQuarantined is how many documents of the collections have a note.
func (s *State) CountQuarantined(ctx context.Context, collections []doc.Collection) (int, error) {
	total := 0
	seen := map[doc.Collection]bool{}
	for _, c := range collections {
		if seen[c] {
			continue
		}
		seen[c] = true
		err := s.pages(ctx, "counting the quarantine", kindQuarantine+string(c), types.SelectCount, func(out *dynamodb.QueryOutput) {
			total += int(out.Count)
		})
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

// cutText is at most n bytes of s, without a torn character at the end.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
