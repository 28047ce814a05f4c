package store

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Lease is the right to do a job alone until a moment. It is no lock: a holder
// that was paused may go on when its time is over. So everything that it writes
// carries the token as a fence, and a lower one is refused where a higher one
// has been.
type Lease struct {
	Name  string
	Token int64 // grows by one with each acquisition, whoever makes it; never by a renewal, and a release does not reset it
	Owner string
	Until time.Time // by the clock of the store, to the microsecond
}

// leaseSkew is how long after its end a lease is left alone. A clock that is
// corrected by the engine's answers is wrong by less than a second, the
// resolution of their Date, and what an answer takes; so two clocks differ by
// less than this, and nobody takes a lease that its holder still counts on.
const leaseSkew = 2 * time.Second

// AcquireLease takes the lease of a name for a time, or answers false when
// somebody else has it. One that was not released can be taken two seconds after
// its end.
func (s *State) AcquireLease(ctx context.Context, name string, life time.Duration) (Lease, bool, error) {
	// The moment is the same for every repetition of the request, so one that is
	// late gives a shorter lease, not a longer one.
	now := s.clock.Now()
	owner := newNonce()
	x := newExpression()
	token := x.name(attrToken)
	x.set = append(x.set, token+" = if_not_exists("+token+", "+x.value("none", num(0))+") + "+x.value("one", num(1)))
	x.assign(attrOwner, str(owner))
	x.assign(attrUntil, num(now.Add(life).UnixMicro()))
	x.require("NOT " + x.name(attrUntil) + " > " + x.value("free", num(now.Add(-leaseSkew).UnixMicro())))
	updated, found, ok, err := s.update(ctx, "acquiring a lease", kindLease, name, x)
	if err != nil {
		return Lease{}, false, err
	}
	if ok {
		return leaseOf(name, updated), true, nil
	}
	// A refusal by one's own acquisition: its answer was lost.
	if l := leaseOf(name, found); l.Owner == owner {
		return l, true, nil
	}
	return Lease{}, false, nil
}

// RenewLease makes a lease last for a time from now on, never shorter than it
// does already, and gives it with its new end. It answers false when somebody
// has acquired it since, or it was released. One that has ended, and that nobody
// has taken, can be renewed.
func (s *State) RenewLease(ctx context.Context, l Lease, life time.Duration) (Lease, bool, error) {
	until := num(s.clock.Now().Add(life).UnixMicro())
	x := newExpression()
	x.assign(attrUntil, until)
	x.held(l)
	x.require("NOT " + x.name(attrUntil) + " > " + x.value(attrUntil, until))
	_, found, ok, err := s.update(ctx, "renewing a lease", kindLease, l.Name, x)
	if err != nil {
		return Lease{}, false, err
	}
	if ok {
		l.Until = micros(until)
		return l, true, nil
	}
	if standing := leaseOf(l.Name, found); standing.Owner == l.Owner && standing.Token == l.Token {
		return standing, true, nil // it lasts longer than was asked for
	}
	return Lease{}, false, nil
}

// ReleaseLease gives a lease back, so that the next one need not wait for its
// end. One that somebody else has acquired since stays theirs.
func (s *State) ReleaseLease(ctx context.Context, l Lease) error {
	x := newExpression()
	x.drop(attrOwner, attrUntil)
	x.held(l)
	_, _, _, err := s.update(ctx, "releasing a lease", kindLease, l.Name, x)
	return err
}

// EndLease ends the lease of a name whoever has it, for who knows that its holder
// is dead. One that lives after all can do no harm: its token is below that of the
// next. There need not be a lease.
func (s *State) EndLease(ctx context.Context, name string) error {
	x := newExpression()
	x.drop(attrOwner, attrUntil)
	x.require("attribute_exists(" + x.name(attrUntil) + ")")
	_, _, _, err := s.update(ctx, "ending a lease", kindLease, name, x)
	return err
}

// held requires that a lease is still that of its owner.
func (x *expression) held(l Lease) {
	x.require(x.name(attrOwner) + " = " + x.value("mine", str(l.Owner)))
	x.require(x.name(attrToken) + " = " + x.value("held", num(l.Token)))
}

func leaseOf(name string, item map[string]types.AttributeValue) Lease {
	l := Lease{Name: name, Token: integer(item[attrToken]), Until: micros(item[attrUntil])}
	l.Owner, _ = text(item[attrOwner])
	return l
}
