// Package where is the further condition of a query: an expression of the
// Common Expression Language over the document, for what filters cannot say,
// such as doc.shippedDate > doc.requiredDate. Expressions are compiled once,
// each evaluation has a limit of cost, and nothing in them reaches outside of
// the document.
//
// Of the functions only the one that answers queries needs this package, and
// it prepares nothing before the first expression comes.
package where

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"holdfast/shared/doc"
)

// Limits of an expression, chosen by this package.
const (
	// MaxBytes is the longest expression.
	MaxBytes = 4096
	// MaxDepth is how deep its parts may be nested.
	MaxDepth = 50
	// MaxCost is the most that one evaluation may cost, in the units of the
	// Common Expression Language: about one for each operation and for each
	// element or each ten characters that it goes through. It takes about a
	// millisecond.
	MaxCost = 20_000
	// remembered is how many compiled expressions are kept.
	remembered = 64
)

// Compiler makes conditions out of expressions and remembers the latest. The
// zero value is ready. It is safe for concurrent use.
type Compiler struct {
	prepare sync.Once
	env     *environment
	err     error

	mu     sync.Mutex
	recent list.List // of *Condition, the latest first
	known  map[string]*list.Element
}

// Condition is a compiled expression. It is safe for concurrent use.
type Condition struct {
	text    string
	program *program
}

// Compile compiles an expression, or finds it among the latest. Errors about
// the expression are of kind InvalidQuery and name the line and the column, or
// of kind QueryTooCostly, with limit and actual, where it is too long.
func (c *Compiler) Compile(text string) (*Condition, error) {
	if len(text) > MaxBytes {
		return nil, doc.Errorf(doc.QueryTooCostly, "an expression has at most %d bytes", MaxBytes).
			With("limit", MaxBytes).With("actual", len(text))
	}
	if known := c.find(text); known != nil {
		return known, nil
	}
	c.prepare.Do(func() { c.env, c.err = newEnvironment() })
	if c.err != nil {
		return nil, fmt.Errorf("prepare the expression language: %w", c.err)
	}
	made, err := compile(c.env, text)
	if err != nil {
		return nil, err
	}
	c.keep(made)
	return made, nil
}

// Predicate is Compile for those who know no Condition.
func (c *Compiler) Predicate(text string) (func(ctx context.Context, data map[string]any) (bool, error), error) {
	condition, err := c.Compile(text)
	if err != nil {
		return nil, err
	}
	return condition.Holds, nil
}

// variable is what the document's data are called in an expression.
const variable = "doc"

func compile(env *environment, text string) (*Condition, error) {
	checked, wrong := env.check(text)
	if len(wrong) > 0 {
		return nil, refusal(wrong[0])
	}
	if out := checked.GetType(checked.Expr().ID()); !out.IsExactType(types.BoolType) && !out.IsExactType(types.DynType) {
		return nil, doc.Errorf(doc.InvalidQuery, "the expression is a condition: it gives true or false, not a value of type %s", out)
	}
	program, err := env.program(checked)
	if err != nil {
		// What the checker passed and the planner does not take, such as a
		// literal that is no regular expression.
		return nil, doc.Errorf(doc.InvalidQuery, "the expression cannot be run: %s", err)
	}
	return &Condition{text: text, program: program}, nil
}

// refusal tells what is wrong and where.
func refusal(wrong *common.Error) error {
	return doc.Errorf(doc.InvalidQuery, "line %d, column %d: %s", wrong.Location.Line(), wrong.Location.Column()+1, wrong.Message)
}

// Holds evaluates the condition for the data of a document. An error says that
// it cannot be answered for this document: a name is missing, types do not fit,
// the result is neither true nor false, or it costs too much. When ctx ends,
// its error is returned.
func (c *Condition) Holds(ctx context.Context, data map[string]any) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	result, err := c.program.evaluate(ctx, data)
	if ended := ctx.Err(); ended != nil {
		return false, ended
	}
	if err != nil {
		return false, fmt.Errorf("evaluate %q: %w", c.text, err)
	}
	holds, ok := result.(types.Bool)
	if !ok {
		return false, fmt.Errorf("evaluate %q: the result is of type %s, neither true nor false", c.text, typeOf(result))
	}
	return bool(holds), nil
}

func typeOf(v ref.Val) string {
	if v == nil {
		return "none"
	}
	return v.Type().TypeName()
}

func (c *Compiler) find(text string) *Condition {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[text]
	if !ok {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*Condition)
}

func (c *Compiler) keep(made *Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.known[made.text]; twice {
		return
	}
	if c.known == nil {
		c.known = make(map[string]*list.Element, remembered)
	}
	if c.recent.Len() == remembered {
		oldest := c.recent.Back()
		delete(c.known, c.recent.Remove(oldest).(*Condition).text)
	}
	c.known[made.text] = c.recent.PushFront(made)
}
