package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/shared/pipeline"
	"holdfast/shared/pipeline/queuetest"
	"holdfast/shared/sim"
	"holdfast/shared/store/storetest"
)

// The models are held to what the real engines are held to.

func TestStoreModel(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() time.Time) storetest.Subject {
		return storetest.Subject{Store: sim.NewWorld(1, now).Store(), Volume: 300}
	})
}

func TestQueueModel(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Transport {
		w := sim.NewWorld(1, nil)
		return queuetest.Transport{
			Queue: w.QueuePort(),
			Receive: func(ctx context.Context) ([]queuetest.Taken, error) {
				var taken []queuetest.Taken
				for _, m := range w.Receive(10) {
					taken = append(taken, queuetest.Taken{Body: m.Body, Receipt: m.ID})
				}
				if len(taken) == 0 {
					time.Sleep(50 * time.Millisecond)
				}
				return taken, ctx.Err()
			},
			Ack:         func(_ context.Context, receipt string) error { w.Ack(receipt); return nil },
			DelayStep:   time.Second,
			ExactDepth:  true,
			RefusesBody: "\x00" + strings.Repeat("x", 3),
		}
	})
}

var _ pipeline.Queue = (*sim.QueuePort)(nil)
