package where

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// environment is the language: its grammar, its standard functions and the one
// variable. It is put together of the parts that package cel has too. That
// package also brings descriptors of protocol buffers and templates, and to
// prepare those takes a function a third of the time that an empty one has to
// start.
type environment struct {
	parser   *parser.Parser
	checker  *checker.Env
	provider types.Provider
	adapter  types.Adapter
	dispatch interpreter.Dispatcher
	tracker  *cost.Tracker // to be cloned for each evaluation
}

// macros are the language's.
var macros = []parser.Macro{
	parser.HasMacro, parser.AllMacro, parser.ExistsMacro, parser.ExistsOneMacro, parser.MapMacro, parser.MapFilterMacro, parser.FilterMacro,
}

// names are what refusals suggest in the place of a name that is not known.
func names() *env.Catalog {
	known := env.NewCatalog(&env.CatalogSymbol{Name: variable, Kind: env.VariableKind})
	for _, f := range stdlib.Functions() {
		known.Add(&env.CatalogSymbol{Name: f.Name(), Kind: env.FunctionKind})
	}
	for _, t := range stdlib.Types() {
		known.Add(&env.CatalogSymbol{Name: t.Name(), Kind: env.TypeKind})
	}
	for _, m := range macros {
		known.Add(&env.CatalogSymbol{Name: m.Function(), Kind: env.MacroKind})
	}
	return known
}

func newEnvironment() (*environment, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	e := &environment{provider: registry, adapter: adapter{types.DefaultTypeAdapter}, dispatch: interpreter.NewDispatcher()}
	e.parser, err = parser.NewParser(
		parser.Macros(macros...), parser.MaxRecursionDepth(MaxDepth), parser.ExpressionSizeCodePointLimit(MaxBytes),
	)
	if err != nil {
		return nil, err
	}
	e.checker, err = checker.NewEnv(containers.DefaultContainer, registry, checker.CrossTypeNumericComparisons(true), checker.Catalog(names))
	if err != nil {
		return nil, err
	}
	functions := stdlib.Functions()
	if err := errors.Join(e.checker.AddIdents(decls.NewVariable(variable, types.DynType)), e.checker.AddFunctions(functions...)); err != nil {
		return nil, err
	}
	for _, f := range functions {
		overloads, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		if err := e.dispatch.Add(overloads...); err != nil {
			return nil, err
		}
	}
	e.tracker, err = cost.NewTracker(nil, cost.TrackerLimit(MaxCost), cost.TrackerLimitExceededHandler(func() { panic(costsTooMuch) }))
	return e, err
}

// costsTooMuch ends an evaluation in the middle, as the interpreter does when
// its context ends.
var costsTooMuch = interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: fmt.Sprintf("it costs more than %d", MaxCost)}

// check parses and checks an expression. What is wrong with it is in the errors,
// in the order of their places.
func (e *environment) check(text string) (*ast.AST, []*common.Error) {
	source := common.NewTextSource(text)
	parsed, errs := e.parser.Parse(source)
	if len(errs.GetErrors()) > 0 {
		return nil, inOrder(errs)
	}
	checked, errs := checker.Check(parsed, source, e.checker)
	if len(errs.GetErrors()) > 0 {
		return nil, inOrder(errs)
	}
	return checked, nil
}

func inOrder(errs *common.Errors) []*common.Error {
	return slices.SortedStableFunc(slices.Values(errs.GetErrors()), func(a, b *common.Error) int {
		return cmp.Or(cmp.Compare(a.Location.Line(), b.Location.Line()), cmp.Compare(a.Location.Column(), b.Location.Column()))
	})
}

// program is a checked expression that is ready to be evaluated. It is safe for
// concurrent use.
type program struct{ plan interpreter.InterpretableV2 }

// checkEvery is after how many steps of its loops an evaluation looks whether its
// context has ended.
const checkEvery = 100

func (e *environment) program(checked *ast.AST) (*program, error) {
	attributes := interpreter.NewAttributeFactory(containers.DefaultContainer, e.adapter, e.provider)
	plan, err := interpreter.NewInterpreter(interpreter.ExtendDispatcher(e.dispatch), containers.DefaultContainer, e.provider, e.adapter, attributes).
		NewInterpretable(checked, interpreter.InterruptableEval(),
			interpreter.CostObserver(interpreter.CostTrackerFactory(func() (*cost.Tracker, error) { return e.tracker.Clone() })))
	if err != nil {
		return nil, err
	}
	return &program{plan: plan}, nil
}

// evaluate gives the value of the expression for the data of a document.
func (p *program) evaluate(ctx context.Context, data map[string]any) (result ref.Val, err error) {
	frame, err := interpreter.NewExecutionFrame(map[string]any{variable: data})
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	if err := frame.SetContext(ctx, checkEvery); err != nil {
		return nil, err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case error: // an EvalCancelledError, or an error of the interpreter
			result, err = nil, r
		default:
			result, err = nil, fmt.Errorf("internal error: %v", r)
		}
	}()
	result = p.plan.Exec(frame)
	if failed, ok := result.(*types.Err); ok {
		return nil, failed
	}
	return result, nil
}
