package sim

import (
	"strconv"
	"time"

	"holdfast/shared/doc"
	"holdfast/shared/pipeline"
)

// streamLife is how long a stream keeps a record.
const streamLife = 24 * time.Hour

// shards is how many lanes the stream has; an id's records are all in one.
const shards = 2

// Stream is the model of the table's stream: the changes of each id in their
// order, kept for a day.
type Stream struct {
	table    *Table
	sequence int
	lanes    [shards][]streamed
	bells    [shards]*bell
}

type image struct {
	version    doc.Version
	collection string
	nonce      string
	deleted    bool
	expires    time.Time
}

func (i *image) told() *pipeline.Image {
	if i == nil {
		return nil
	}
	return &pipeline.Image{Version: i.version, Collection: i.collection, Nonce: i.nonce, Deleted: i.deleted, ExpiresAt: i.expires}
}

type streamed struct {
	record pipeline.Record
	at     time.Time
}

// append adds the record of a change, unless this one is to be lost.
func (s *Stream) append(p *Process, was, now *item, byTTL bool) {
	s.sequence++
	id := doc.ID("")
	event := pipeline.Modify
	switch {
	case now == nil && was == nil:
		return
	case now == nil:
		id, event = was.id, pipeline.Remove
	case was == nil:
		id, event = now.id, pipeline.Insert
	default:
		id = now.id
	}
	w := s.table.w
	if p != nil && p.chance(w.rates.DropRecord) {
		w.faults["record dropped"]++
		w.note("stream", "loses a record")
		return
	}
	lane := bucketOf(doc.ID(id.Root()), shards)
	w.rung(s.bells[lane])
	s.lanes[lane] = append(s.lanes[lane], streamed{at: w.now(), record: pipeline.Record{
		// Longer and shorter ones, as the sequence numbers of a stream are.
		Sequence: strconv.Itoa(s.sequence * 1000), Event: event, ByTTL: byTTL, ID: id, New: now.image().told(), Old: was.image().told(),
	}})
}

// batch gives the oldest records of a lane, at most n; those that were kept too
// long are gone.
func (s *Stream) batch(lane, n int) []pipeline.Record {
	records := s.lanes[lane]
	old := s.table.w.now().Add(-streamLife)
	gone := 0
	for gone < len(records) && records[gone].at.Before(old) {
		gone++
	}
	if gone > 0 {
		s.table.w.faults["record expired"] += gone
		s.lanes[lane] = records[gone:]
	}
	var batch []pipeline.Record
	for _, r := range s.lanes[lane][:min(n, len(s.lanes[lane]))] {
		batch = append(batch, r.record)
	}
	return batch
}

// done gives up the records before a sequence number; "" stands for all n.
func (s *Stream) done(lane, n int, failed string) {
	records := s.lanes[lane]
	k := 0
	for k < min(n, len(records)) && records[k].record.Sequence != failed {
		k++
	}
	s.lanes[lane] = records[k:]
}
