package repair

import (
	"context"
	"slices"

	"holdfast/shared/collection"
	"holdfast/shared/doc"
	"holdfast/shared/search"
)

// walk goes through the indexes, for what is in there only: documents of which
// the table has no trace, documents of collections that are indexed elsewhere,
// and markers whose tombstones are gone.
func (x *run) walk(ctx context.Context, p *pass) (done bool, err error) {
	for _, g := range x.allWritten() {
		if _, looked := p.From[noteKey(g)]; !looked || p.Walked[noteKey(g)] {
			continue
		}
		if p.WalkAfter == "" {
			// The walk sees what searches see.
			if err := x.Index.Refresh(ctx, []collection.Generation{g}); err != nil {
				x.unwell = true
				return false, err
			}
		}
		for {
			if x.left() <= 0 {
				return false, nil
			}
			page, err := x.Index.Walk(ctx, g, search.WalkQuery{After: p.WalkAfter, Limit: chunk})
			if err != nil {
				x.unwell = true
				return false, err
			}
			if err := x.walkPage(ctx, p, g, page); err != nil {
				return false, err
			}
			if len(page) < chunk {
				break
			}
			p.WalkAfter = page[len(page)-1].ID
		}
		p.Walked[noteKey(g)], p.WalkAfter = true, ""
	}
	return true, nil
}

// walkPage removes from the index what the table does not know.
//
// The index was read before the table, so an id that the table has no trace of
// was gone by then. What is removed is removed at the version that was seen: a
// document that was created again since has a newer one and stays. Nor can
// anything older come back: whoever still has a signal about the id reads the
// table again and finds nothing.
func (x *run) walkPage(ctx context.Context, p *pass, g collection.Generation, page []search.Standing) error {
	if len(page) == 0 {
		return nil
	}
	ids := make([]doc.ID, len(page))
	for i, s := range page {
		ids[i] = s.ID
	}
	standings, err := x.Table.Standings(ctx, ids)
	if err != nil {
		return err
	}
	var erase []doc.Signal
	markers := map[doc.ID]bool{}
	now := x.Now()
	for _, s := range page {
		_, there := standings[s.ID]
		belongs := slices.Contains(x.definition(s.ID.Collection()).Writes(), g.Family)
		switch {
		case there && belongs:
			continue
		case s.Deleted && belongs && now.Sub(s.Version.Time()) < x.TombstoneLife:
			// The tombstone went early, by another tool's hand. Its marker stays
			// as long as the tombstone should have.
			continue
		case !s.Deleted && belongs:
			// No tombstone, no document: it was removed by another tool.
			if err := x.found(ctx, p, g, Difference{Family: g.Family, Number: g.Number, ID: s.ID, Version: s.Version, Reason: extra}); err != nil {
				return err
			}
		}
		markers[s.ID] = s.Deleted
		erase = append(erase, doc.Signal{ID: s.ID, Version: s.Version})
	}
	if len(erase) == 0 {
		return nil
	}
	outcomes, err := x.Index.Erase(ctx, g, erase)
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if o.Kind == search.Applied && markers[erase[i].ID] {
			x.report.Purged++
		}
	}
	return nil
}
