package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/local/chaos"
)

// report writes what a run did and found, and gives the error for the exit code.
func (b *breaking) report(c *cobra.Command, r *chaos.Result) error {
	var err error
	if b.format == "json" {
		err = writeJSON(c.OutOrStdout(), r)
	} else {
		err = writePairs(c.OutOrStdout(), chaosFigures(r))
	}
	if err != nil {
		return err
	}
	if r.Clean {
		return nil
	}
	for _, line := range append(slices.Clone(r.Problems), r.Examples...) {
		note(c, "! %s", client.Printable(line))
	}
	return failed(errors.New("not everything is as promised"))
}

// chaosFigures are the figures of a run for people.
func chaosFigures(r *chaos.Result) [][2]string {
	w, s := r.Writes, r.Seconds
	faults, requests := 0, 0
	var byEngine []string
	for _, engine := range slices.Sorted(maps.Keys(r.Requests)) {
		met := 0
		for _, n := range r.Faults[engine] {
			met += n
		}
		faults, requests = faults+met, requests+r.Requests[engine]
		byEngine = append(byEngine, fmt.Sprintf("%s %d of %d", engine, met, r.Requests[engine]))
	}
	pairs := [][2]string{
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"documents", fmt.Sprintf("%d imported in %.0f s; in the end %d live and %d are deleted", r.Documents, s.Import, r.Live, r.Gone)},
		{"writes", fmt.Sprintf("%d acknowledged, %d of them deletes and %d under a condition; %d refused, %d with an unknown outcome", w.Acknowledged, w.Deletes, w.Conditional, w.Refused, w.Unknown)},
		{"other answers", counts(w.Answers)},
		{"loads meanwhile", fmt.Sprintf("%d documents", r.Loads)},
		{"kills", counts(r.Kills)},
		{"requests to engines", fmt.Sprintf("%d, of which %d met a fault: %s", requests, faults, strings.Join(byEngine, ", "))},
	}
	for _, engine := range slices.Sorted(maps.Keys(r.Faults)) {
		pairs = append(pairs, [2]string{"  faults of " + engine, counts(r.Faults[engine])})
	}
	pairs = append(pairs,
		[2]string{"when the faults ended", fmt.Sprintf("%d documents differed", r.Backlog)},
		[2]string{"time to converge", fmt.Sprintf("%.1f s until index and table agreed, %.1f s until that was proven", s.Converge, s.Prove)},
		[2]string{"repair", fmt.Sprintf("%d runs seen, %d of them failed; %d comparisons, %d signals sent again, %d drifted", r.Repair.Runs, r.Repair.Failed, r.Repair.Comparisons, r.Repair.Resignalled, r.Repair.Drift)},
	)
	compared := "did not come to its end"
	if p := r.Comparison; p != nil {
		compared = fmt.Sprintf("%d checked, %d missing, %d older, %d different, %d extra, %d ahead, %d foreign", p.Checked, p.Missing, p.Older, p.Different, p.Extra, p.Ahead, p.Foreign)
	}
	verdict := "everything is as promised"
	if !r.Clean {
		verdict = "NOT everything is as promised"
	}
	return append(pairs,
		[2]string{"full comparison", compared},
		[2]string{"checked by the writers", fmt.Sprintf("%d lost, %d duplicated, %d extra, %d not found as they are, %d in disorder", r.Lost, r.Duplicated, r.Extra, r.Unfound, r.Disorder)},
		[2]string{"in all", fmt.Sprintf("%s, in %.0f s", verdict, s.Total)},
	)
}

// counts writes numbers with their names, the largest first.
func counts(all map[string]int) string {
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		if d := all[b] - all[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	if len(names) == 0 {
		return "none"
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", all[name], name)
	}
	return strings.Join(names, ", ")
}
