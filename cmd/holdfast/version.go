package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"holdfast/shared/obs"
)

func newVersion() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "version",
		Short:   "Show which build this is",
		Example: "  holdfast version --output json",
		Args:    takes(cobra.NoArgs),
		RunE: runs(func(_ context.Context, c *cobra.Command, _ []string) error {
			if err := out.check(c); err != nil {
				return err
			}
			pairs := [][2]string{{"version", obs.Version()}}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" || s.Key == "vcs.time" || s.Key == "vcs.modified" {
						pairs = append(pairs, [2]string{s.Key[len("vcs."):], s.Value})
					}
				}
			}
			pairs = append(pairs, [2]string{"go", runtime.Version()}, [2]string{"platform", runtime.GOOS + "/" + runtime.GOARCH})
			if out.format == "table" {
				return writePairs(c.OutOrStdout(), pairs)
			}
			members := map[string]string{}
			for _, p := range pairs {
				members[p[0]] = p[1]
			}
			return writeJSON(c.OutOrStdout(), members)
		}),
	}
	out.register(c, "table", "json")
	return c
}
