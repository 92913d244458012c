package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/modern"
)

const watched = "test://watched-resource"

// watch says every 3 s that the watched resource has changed, as the suite wants.
func watch(s *modern.Server) {
	for range time.Tick(3 * time.Second) {
		s.ResourceUpdated(watched)
	}
}

func listResources(context.Context, *modern.Call) (modern.Result, error) {
	return modern.Result{"resources": []map[string]string{
		{"uri": "test://static-text", "name": "static-text", "mimeType": "text/plain"},
		{"uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png"},
		{"uri": watched, "name": "watched-resource", "mimeType": "text/plain"},
	}}, nil
}

func listTemplates(context.Context, *modern.Call) (modern.Result, error) {
	return modern.Result{"resourceTemplates": []map[string]string{
		{"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"},
	}}, nil
}

func readResource(_ context.Context, c *modern.Call) (modern.Result, error) {
	uri := c.Params.URI
	content := map[string]string{"uri": uri, "mimeType": "text/plain"}
	var id string
	if rest, ok := strings.CutPrefix(uri, "test://template/"); ok {
		id, _ = strings.CutSuffix(rest, "/data")
	}
	switch {
	case uri == "test://static-text":
		content["text"] = "This is the content of the static text resource."
	case uri == "test://static-binary":
		content["mimeType"], content["blob"] = "image/png", image
	case uri == watched:
		content["text"] = "Watched resource content"
	case id != "":
		content["mimeType"], content["text"] = "application/json", fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
	default:
		return nil, &modern.Error{Code: -32602, Message: "Resource not found", Data: map[string]string{"uri": uri}}
	}
	return modern.Result{"contents": []any{content}}, nil
}

func listPrompts(context.Context, *modern.Call) (modern.Result, error) {
	argument := func(name string) map[string]any { return map[string]any{"name": name, "required": true} }
	return modern.Result{"prompts": []map[string]any{
		{"name": "test_simple_prompt", "description": "a prompt without arguments"},
		{"name": "test_prompt_with_arguments", "description": "a prompt with arguments", "arguments": []any{argument("arg1"), argument("arg2")}},
		{"name": "test_prompt_with_embedded_resource", "description": "a prompt with a resource", "arguments": []any{argument("resourceUri")}},
		{"name": "test_prompt_with_image", "description": "a prompt with an image"},
		{"name": "test_input_required_result_prompt", "description": "a prompt that asks"},
	}}, nil
}

func getPrompt(_ context.Context, c *modern.Call) (modern.Result, error) {
	var a map[string]string
	if len(c.Params.Arguments) > 0 {
		if err := json.Unmarshal(c.Params.Arguments, &a); err != nil {
			return nil, modern.InvalidParams("arguments: %v", err)
		}
	}
	var content any
	switch c.Params.Name {
	case "test_simple_prompt":
		content = map[string]string{"type": "text", "text": "This is a simple prompt for testing."}
	case "test_prompt_with_arguments":
		content = map[string]string{"type": "text", "text": fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	case "test_prompt_with_embedded_resource":
		content = resourcePart(a["resourceUri"])
	case "test_prompt_with_image":
		content = imagePart
	case "test_input_required_result_prompt":
		text, ok := accepted(c, "user_context")["context"].(string)
		if !ok {
			return one("user_context", modern.Elicit("Please provide context for the prompt", modern.Object(map[string]string{"context": "string"})), "")
		}
		content = map[string]string{"type": "text", "text": "Context: " + text}
	default:
		return nil, modern.InvalidParams("unknown prompt %q", c.Params.Name)
	}
	return modern.Result{"messages": []any{map[string]any{"role": "user", "content": content}}}, nil
}

func complete(context.Context, *modern.Call) (modern.Result, error) {
	return modern.Result{"completion": map[string]any{"values": []string{}}}, nil
}
