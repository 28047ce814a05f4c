package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
)

func newJobs() *cobra.Command {
	var at connection
	var out output
	c := &cobra.Command{
		Use:   "jobs [NAME]",
		Short: "See what the jobs did last, or ask for a run",
		Long: `Lists the jobs, which run by a schedule or when they are asked for, with how the
last run of each ended. With a name it shows what that run found and did.

  repair   proves the index against the table every minute, and makes good what it
           lacks; compares all of both once a day
  reindex  makes an index anew from the table`,
		Example: `  holdfast jobs
  holdfast jobs repair
  holdfast jobs run repair --mode compare`,
		Args: takes(cobra.MaximumNArgs(1), oneJob),
		RunE: asks(&at, &out, func(ctx context.Context, c *cobra.Command, api *client.Client, args []string) error {
			if len(args) == 1 {
				job, err := client.Read[client.Job](ctx, api, "/jobs/"+args[0], nil)
				if err != nil {
					return err
				}
				if out.format == "json" {
					return writeJSON(c.OutOrStdout(), job)
				}
				return showJob(c, job)
			}
			list, err := client.Read[struct{ Jobs []client.Job }](ctx, api, "/jobs", nil)
			if err != nil {
				return err
			}
			if out.format == "json" {
				for _, job := range list.Jobs {
					if err := writeJSON(c.OutOrStdout(), job); err != nil {
						return err
					}
				}
				return nil
			}
			return writeGrid(c.OutOrStdout(), jobRows(list.Jobs, time.Now()))
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	c.AddCommand(newJobsRun())
	return c
}

// oneJob refuses a name that would be another route.
func oneJob(args []string) error {
	if len(args) > 0 && (args[0] == "" || strings.Contains(args[0], "/")) {
		return fmt.Errorf("%q is no name of a job, such as repair", args[0])
	}
	return nil
}

// jobRows are jobs as lines of a table.
func jobRows(list []client.Job, now time.Time) [][]string {
	rows := [][]string{{"job", "last run", "mode", "outcome", "asked for"}}
	for _, job := range list {
		row := []string{job.Name, "never", "", "", ""}
		if last := job.Last; last != nil {
			row[1], row[2], row[3] = ago(&last.Started, now), last.Mode, last.Outcome
			if last.Error != "" {
				row[3] += ": " + last.Error
			}
		}
		var asked []string
		for _, r := range job.Requests {
			asked = append(asked, strings.TrimSpace(r.Mode+" "+r.Collection))
		}
		row[4] = strings.Join(asked, ", ")
		rows = append(rows, row)
	}
	return rows
}

// showJob writes what there is about one job; the details of its last run as
// YAML.
func showJob(c *cobra.Command, job client.Job) error {
	if err := writeGrid(c.OutOrStdout(), jobRows([]client.Job{job}, time.Now())); err != nil {
		return err
	}
	if job.Last == nil || len(job.Last.Detail) == 0 {
		return nil
	}
	detail, err := toYAML(job.Last.Detail)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "\n%s", detail)
	return err
}

func newJobsRun() *cobra.Command {
	var at connection
	var mode, collection string
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Ask for a run of a job",
		Long: `Leaves a request that the next run of the job takes up, within a minute.

Modes of repair:
  prove    what is due anyway (this is the standard)
  compare  compare the whole table with the whole index
  purge    the same; it removes the markers of deletes whose time is over
  retry    try the whole quarantine again`,
		Example: `  holdfast jobs run repair --mode compare
  holdfast jobs run reindex --collection orders`,
		Args: takes(cobra.ExactArgs(1), oneJob),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			if err := notEmpty(c, "mode", "collection"); err != nil {
				return err
			}
			return runJob(ctx, c, at, args[0], mode, collection)
		}),
	}
	at.register(c)
	c.Flags().StringVar(&mode, "mode", "", "what the run is to do: prove, compare, purge or retry")
	complete(c, "mode", "prove", "compare", "purge", "retry")
	c.Flags().StringVar(&collection, "collection", "", "of reindex: the collection whose index is made anew")
	return c
}

// runJob asks for a run and writes the request as it waits.
func runJob(ctx context.Context, c *cobra.Command, at connection, name, mode, collection string) error {
	api, err := at.open(ctx, c, shortPatience, false)
	if err != nil {
		return err
	}
	body := map[string]string{}
	if mode != "" {
		body["mode"] = mode
	}
	if collection != "" {
		body["collection"] = collection
	}
	asked, err := client.Post[client.JobRequest](ctx, api, "/jobs/"+name, body)
	if err != nil {
		return err
	}
	return writeJSON(c.OutOrStdout(), asked)
}

func newReindex() *cobra.Command {
	var at connection
	var shared bool
	c := &cobra.Command{
		Use:   "reindex COLLECTION",
		Short: "Make the index of a collection anew from the table",
		Long: `Asks for a new index, filled from the table while documents are written to the
old one and to the new. Queries read the old one until the new one is proven
complete; then that takes its place, and the old one is removed. "holdfast status"
tells how far it is. Of a collection without an index of its own, it is the index
that all such collections share.`,
		Example: `  holdfast reindex customers/orders
  holdfast reindex --shared          # the index of all collections without one of their own`,
		Args: takes(cobra.MaximumNArgs(1), func(args []string) error {
			if (len(args) == 1) == shared {
				return fmt.Errorf("name a collection, or use --shared")
			}
			if shared {
				return nil
			}
			return oneCollection(args)
		}),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error {
			collection := ""
			if len(args) == 1 {
				collection = args[0]
			}
			return runJob(ctx, c, at, "reindex", "", collection)
		}),
	}
	at.register(c)
	c.Flags().BoolVar(&shared, "shared", false, "the index that collections without one of their own share")
	return c
}
