package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

// askingTools answer by input_required until they have what they need.
var askingTools = map[string]tool{
	"test_sampling":                             {schema: `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, run: askSampling},
	"test_elicitation":                          {schema: `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, run: askElicitation},
	"test_elicitation_sep1034_defaults":         {run: askForm("Test defaults for primitives", defaults)},
	"test_elicitation_sep1330_enums":            {run: askForm("Test enum schemas", enums)},
	"test_input_required_result_elicitation":    {run: askName},
	"test_input_required_result_sampling":       {run: askCapital},
	"test_input_required_result_list_roots":     {run: askRoots},
	"test_input_required_result_request_state":  {run: askConfirmation},
	"test_input_required_result_tampered_state": {run: askConfirmation},
	"test_input_required_result_multiple_inputs": {
		run: askSeveral,
	},
	"test_input_required_result_multi_round":  {run: askTwice},
	"test_input_required_result_capabilities": {run: askWhatIsDeclared},
}

// one is a single question.
func one(key string, q modern.Question, state string) (modern.Result, error) {
	return modern.InputRequired(map[string]modern.Question{key: q}, state), nil
}

// accepted is the content of an elicitation that the user accepted, else nil.
func accepted(c *modern.Call, key string) map[string]any {
	var answer struct {
		Action  string
		Content map[string]any
	}
	if json.Unmarshal(c.Params.InputResponses[key], &answer) != nil || answer.Action != "accept" {
		return nil
	}
	return answer.Content
}

// sampled is the text that the client's model said.
func sampled(c *modern.Call, key string) (string, bool) {
	var answer struct {
		Role    string
		Content struct{ Text string }
	}
	raw, ok := c.Params.InputResponses[key]
	return answer.Content.Text, ok && json.Unmarshal(raw, &answer) == nil && answer.Role != ""
}

// roots are the URIs of the client's roots.
func roots(c *modern.Call, key string) ([]string, bool) {
	var answer struct{ Roots []struct{ URI string } }
	raw, ok := c.Params.InputResponses[key]
	if !ok || json.Unmarshal(raw, &answer) != nil || answer.Roots == nil {
		return nil, false
	}
	var uris []string
	for _, r := range answer.Roots {
		uris = append(uris, r.URI)
	}
	return uris, true
}

func askSampling(_ context.Context, c *modern.Call, a arguments) (modern.Result, error) {
	if text, ok := sampled(c, "prompt"); ok {
		return modern.Text("LLM response: " + text), nil
	}
	return one("prompt", modern.Sample(a.Prompt), "")
}

func askElicitation(_ context.Context, c *modern.Call, a arguments) (modern.Result, error) {
	return form(c, a.Message, modern.Object(map[string]string{"username": "string"}))
}

// askForm is a tool that shows one form.
func askForm(text, schema string) func(context.Context, *modern.Call, arguments) (modern.Result, error) {
	return func(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(schema), &decoded); err != nil {
			return nil, err
		}
		return form(c, text, decoded)
	}
}

func form(c *modern.Call, text string, schema map[string]any) (modern.Result, error) {
	raw, ok := c.Params.InputResponses["form"]
	if !ok {
		return one("form", modern.Elicit(text, schema), "")
	}
	var answer struct {
		Action  string
		Content json.RawMessage
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, modern.InvalidParams("the answer to the form: %v", err)
	}
	return modern.Text(fmt.Sprintf("Elicitation result: action=%s, content=%s", answer.Action, answer.Content)), nil
}

var nameForm = modern.Elicit("What is your name?", modern.Object(map[string]string{"name": "string"}))

func askName(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	if name, ok := accepted(c, "user_name")["name"].(string); ok && name != "" {
		return modern.Text("Hello, " + name + "!"), nil
	}
	return one("user_name", nameForm, "")
}

func askCapital(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	if text, ok := sampled(c, "capital_question"); ok {
		return modern.Text("Sampling response: " + text), nil
	}
	return one("capital_question", modern.Sample("What is the capital of France?"), "")
}

func askRoots(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	if uris, ok := roots(c, "client_roots"); ok {
		return modern.Text(fmt.Sprintf("Client exposed %d root(s): %s", len(uris), strings.Join(uris, ", "))), nil
	}
	return one("client_roots", modern.Roots(), "")
}

// state is what the asking tools keep in a requestState.
type state struct {
	Tool, Name string
	Round      int
}

// open reads the state of the tool that is called.
func open(c *modern.Call) (s state, err error) {
	ok, err := c.Open(&s)
	if ok && s.Tool != c.Params.Name {
		err = modern.InvalidParams("a requestState of another tool")
	}
	return s, err
}

func askConfirmation(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	s, err := open(c)
	if err != nil {
		return nil, err
	}
	if s.Round == 1 && accepted(c, "confirm") != nil {
		return modern.Text("state-ok: requestState received and confirmation accepted"), nil
	}
	question := modern.Elicit("Please confirm", modern.Object(map[string]string{"ok": "boolean"}))
	return one("confirm", question, modern.Seal(state{Tool: c.Params.Name, Round: 1}))
}

func askSeveral(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	if _, err := open(c); err != nil {
		return nil, err
	}
	name, _ := accepted(c, "user_name")["name"].(string)
	greeting, greeted := sampled(c, "greeting")
	uris, listed := roots(c, "client_roots")
	if name != "" && greeted && listed {
		return modern.Text(fmt.Sprintf("%s %s, %d root(s) visible", greeting, name, len(uris))), nil
	}
	return modern.InputRequired(map[string]modern.Question{
		"user_name": nameForm, "greeting": modern.Sample("Generate a greeting"), "client_roots": modern.Roots(),
	}, modern.Seal(state{Tool: c.Params.Name, Round: 1})), nil
}

// askTwice keeps the answer of the first round in the state.
func askTwice(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	s, err := open(c)
	if err != nil {
		return nil, err
	}
	s.Tool = c.Params.Name
	s.Round++
	switch s.Round {
	case 1:
		return one("step1", modern.Elicit("Step 1: What is your name?", modern.Object(map[string]string{"name": "string"})), modern.Seal(s))
	case 2:
		s.Name, _ = accepted(c, "step1")["name"].(string)
		return one("step2", modern.Elicit("Step 2: What is your favorite color?", modern.Object(map[string]string{"color": "string"})), modern.Seal(s))
	}
	color, _ := accepted(c, "step2")["color"].(string)
	return modern.Text(fmt.Sprintf("Multi-round complete: %s likes %s", s.Name, color)), nil
}

func askWhatIsDeclared(_ context.Context, c *modern.Call, _ arguments) (modern.Result, error) {
	if len(c.Params.InputResponses) > 0 {
		return modern.Text("Capability-aware input requests fulfilled"), nil
	}
	questions := make(map[string]modern.Question)
	for capability, q := range map[string]modern.Question{
		"elicitation": nameForm, "sampling": modern.Sample("Generate a short greeting"), "roots": modern.Roots(),
	} {
		if c.Require(capability) == nil {
			questions[capability] = q
		}
	}
	if len(questions) == 0 {
		return modern.Text("the client can be asked nothing"), nil
	}
	return modern.InputRequired(questions, ""), nil
}
