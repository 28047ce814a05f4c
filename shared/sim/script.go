package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"holdfast/shared/doc"
)

// OpKind is what an operation of a script does.
type OpKind int

// The kinds of operation: what clients do, what other tools do, and what goes
// wrong with the engines at once.
const (
	Put           OpKind = iota // over whatever is there
	PutSeen                     // under the version that a load gave
	PutNew                      // under the condition that there is none
	Poison                      // a document that the index refuses, at levels below Arg
	Delete                      // whatever is there
	DeleteSeen                  // under the version that a load gave
	Load                        // one document
	Wait                        // for what the same actor wrote last
	AsOf                        // for everything as of now
	ForeignPut                  // another tool replaces an item
	ForeignEdit                 // another tool changes an item's data
	ForeignRemove               // another tool removes an item
	Outage                      // the engine Arg does not answer for a while
	FeedStall                   // nothing reaches the feed for a while
	Restart                     // of the search engine
	LoseIndex                   // an index is gone
	LoseAlias                   // an alias is gone
	ClockStep                   // the clock of an actor jumps
	Define                      // the form Arg of a collection's index
	Redrive                     // of the dead letters
	Pause                       // all functions are switched off for a while
	Compare                     // asks repair for a comparison of everything
	opKinds
)

func (k OpKind) String() string {
	return [...]string{
		"put", "put-seen", "put-new", "poison", "delete", "delete-seen", "load", "wait", "as-of", "foreign-put", "foreign-edit",
		"foreign-remove", "outage", "feed-stall", "restart", "lose-index", "lose-alias", "clock-step", "define", "redrive", "pause", "compare",
	}[k]
}

// Op is one operation of a script. It begins at its moment, or when the
// operation before it of the same actor has ended.
type Op struct {
	N     int // names it, and its randomness, in every shortened script
	At    time.Duration
	Actor int
	Kind  OpKind
	ID    doc.ID
	Arg   int
	For   time.Duration
}

func (o Op) String() string {
	return strings.TrimSpace(fmt.Sprintf("#%d at %s actor %d: %s %s %d %s", o.N, o.At.Round(time.Millisecond), o.Actor, o.Kind, o.ID, o.Arg, o.For))
}

// clients is how many actors write and read; one more makes trouble.
const clients = 4

var collections = []doc.Collection{"users", "orders", "items", "users/part"}

// script draws the operations of a run.
func script(r *rand.Rand, n int, o scriptOptions) []Op {
	at := time.Duration(0)
	ids := 5 + r.IntN(36)
	ops := make([]Op, 0, n)
	hot := r.IntN(3) == 0
	for k := range n {
		at += gap(r)
		op := Op{N: k, At: at, Actor: r.IntN(clients), ID: idOf(r, ids, hot), Kind: kindOf(r, o)}
		switch op.Kind {
		case Poison:
			op.Arg = 1 + r.IntN(4)
		case Outage:
			op.Actor, op.Arg = clients, []int{int(IndexEngine), int(IndexEngine), int(TableEngine), int(StateEngine), int(QueueEngine)}[r.IntN(5)]
			op.For = time.Duration(1+r.IntN(60)) * time.Second
			if op.Arg == int(IndexEngine) && r.IntN(3) == 0 {
				op.For = time.Hour
			}
		case FeedStall:
			op.Actor, op.For = clients, time.Duration(r.IntN(120))*time.Second
		case ClockStep:
			op.For = time.Duration(r.IntN(1200)-600) * time.Second
		case Define:
			op.Actor, op.Arg = clients, r.IntN(4)
		case Pause:
			op.Actor, op.For = clients, time.Duration(1+r.IntN(72))*time.Hour
		case Restart, LoseIndex, LoseAlias, Redrive, Compare:
			op.Actor, op.Arg = clients, r.IntN(1000)
		}
		ops = append(ops, op)
	}
	return ops
}

// scriptOptions say what else a script may hold.
type scriptOptions struct {
	repair  bool // things that only repair heals
	pauses  bool // days without any function
	foreign bool
}

func gap(r *rand.Rand) time.Duration {
	switch n := r.IntN(100); {
	case n < 60:
		return time.Duration(r.IntN(100)) * time.Millisecond
	case n < 97:
		return time.Duration(r.IntN(3000)) * time.Millisecond
	}
	return time.Duration(r.IntN(60_000)) * time.Millisecond
}

func idOf(r *rand.Rand, ids int, hot bool) doc.ID {
	n := r.IntN(ids)
	if hot && r.IntN(2) == 0 {
		n = 0
	}
	c := collections[n%len(collections)]
	if c == "users/part" {
		return doc.ID(fmt.Sprintf("users/%d/part/%d", n%3, n))
	}
	return doc.ID(fmt.Sprintf("%s/%d", c, n))
}

func kindOf(r *rand.Rand, o scriptOptions) OpKind {
	n := r.IntN(1000)
	for _, k := range []struct {
		kind   OpKind
		weight int
		on     bool
	}{
		{PutSeen, 120, true}, {PutNew, 60, true}, {Poison, 25, true}, {Delete, 130, true}, {DeleteSeen, 40, true}, {Load, 130, true},
		{Wait, 60, true}, {AsOf, 15, true},
		{ForeignPut, 8, o.foreign}, {ForeignEdit, 8, o.foreign}, {ForeignRemove, 8, o.foreign},
		{Outage, 5, true}, {FeedStall, 3, true}, {Restart, 5, true}, {ClockStep, 6, true}, {Redrive, 2, true},
		{LoseIndex, 1, o.repair}, {LoseAlias, 1, o.repair}, {Define, 2, o.repair}, {Compare, 1, o.repair}, {Pause, 1, o.pauses},
	} {
		if !k.on {
			continue
		}
		if n < k.weight {
			return k.kind
		}
		n -= k.weight
	}
	return Put
}
