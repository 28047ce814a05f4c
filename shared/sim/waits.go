package sim

import "context"

func (w *World) wait(ctx context.Context, p *Process, a *actor, op Op, s *Store, plant *Plant) {}
