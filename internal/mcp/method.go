package mcp

// Method is a method of the protocol, in either direction and of any revision;
// Other is every name that is none. The values are small and dense, for use as
// an index, and are not the same from one build to the next: store String.
type Method uint8

// The methods. A comment names the revisions where not all have it; the tasks
// methods exist as an experiment in 2025-11-25 and as extension SEP-2663 in
// 2026-07-28.
const (
	Other Method = iota

	Initialize // handshake era
	Ping       // handshake era, both directions
	ToolsList
	ToolsCall
	PromptsList
	PromptsGet
	ResourcesList
	ResourcesTemplatesList
	ResourcesRead
	ResourcesSubscribe   // handshake era
	ResourcesUnsubscribe // handshake era
	CompletionComplete
	LoggingSetLevel // handshake era

	// Requests of the server to the client; 2026-07-28 carries them inside an
	// input_required result instead.
	SamplingCreateMessage
	ElicitationCreate // since 2025-06-18
	RootsList

	TasksList   // 2025-11-25, both directions
	TasksGet    // both
	TasksResult // 2025-11-25, both directions
	TasksCancel // both
	TasksUpdate // SEP-2663

	ServerDiscover      // 2026-07-28
	SubscriptionsListen // 2026-07-28

	NotifInitialized // handshake era
	NotifCancelled
	NotifProgress
	NotifMessage
	NotifToolsListChanged
	NotifPromptsListChanged
	NotifResourcesListChanged
	NotifResourcesUpdated
	NotifRootsListChanged          // handshake era, from the client
	NotifElicitationComplete       // 2025-11-25
	NotifTasksStatus               // 2025-11-25
	NotifTasks                     // SEP-2663
	NotifSubscriptionsAcknowledged // 2026-07-28

	methodCount
)

// MethodCount is above every Method.
const MethodCount = int(methodCount)

// MethodOf returns the method that name, the decoded content of a message's
// "method" member, stands for; the comparison is exact. It does not allocate.
func MethodOf(name []byte) Method {
	// The compiler compares in place: no string is made of name.
	if m, ok := requestOf(name); ok {
		return m
	}
	return notificationOf(name)
}

func requestOf(name []byte) (Method, bool) {
	switch string(name) {
	case "initialize":
		return Initialize, true
	case "ping":
		return Ping, true
	case "tools/list":
		return ToolsList, true
	case "tools/call":
		return ToolsCall, true
	case "prompts/list":
		return PromptsList, true
	case "prompts/get":
		return PromptsGet, true
	case "resources/list":
		return ResourcesList, true
	case "resources/templates/list":
		return ResourcesTemplatesList, true
	case "resources/read":
		return ResourcesRead, true
	case "resources/subscribe":
		return ResourcesSubscribe, true
	case "resources/unsubscribe":
		return ResourcesUnsubscribe, true
	case "completion/complete":
		return CompletionComplete, true
	case "logging/setLevel":
		return LoggingSetLevel, true
	case "sampling/createMessage":
		return SamplingCreateMessage, true
	case "elicitation/create":
		return ElicitationCreate, true
	case "roots/list":
		return RootsList, true
	case "tasks/list":
		return TasksList, true
	case "tasks/get":
		return TasksGet, true
	case "tasks/result":
		return TasksResult, true
	case "tasks/cancel":
		return TasksCancel, true
	case "tasks/update":
		return TasksUpdate, true
	case "server/discover":
		return ServerDiscover, true
	case "subscriptions/listen":
		return SubscriptionsListen, true
	}
	return Other, false
}

func notificationOf(name []byte) Method {
	switch string(name) {
	case "notifications/initialized":
		return NotifInitialized
	case "notifications/cancelled":
		return NotifCancelled
	case "notifications/progress":
		return NotifProgress
	case "notifications/message":
		return NotifMessage
	case "notifications/tools/list_changed":
		return NotifToolsListChanged
	case "notifications/prompts/list_changed":
		return NotifPromptsListChanged
	case "notifications/resources/list_changed":
		return NotifResourcesListChanged
	case "notifications/resources/updated":
		return NotifResourcesUpdated
	case "notifications/roots/list_changed":
		return NotifRootsListChanged
	case "notifications/elicitation/complete":
		return NotifElicitationComplete
	case "notifications/tasks/status":
		return NotifTasksStatus
	case "notifications/tasks":
		return NotifTasks
	case "notifications/subscriptions/acknowledged":
		return NotifSubscriptionsAcknowledged
	}
	return Other
}

// methodNames is the inverse of MethodOf, by Method; a test holds the two
// together.
var methodNames = [methodCount]string{
	Other:                          "other",
	Initialize:                     "initialize",
	Ping:                           "ping",
	ToolsList:                      "tools/list",
	ToolsCall:                      "tools/call",
	PromptsList:                    "prompts/list",
	PromptsGet:                     "prompts/get",
	ResourcesList:                  "resources/list",
	ResourcesTemplatesList:         "resources/templates/list",
	ResourcesRead:                  "resources/read",
	ResourcesSubscribe:             "resources/subscribe",
	ResourcesUnsubscribe:           "resources/unsubscribe",
	CompletionComplete:             "completion/complete",
	LoggingSetLevel:                "logging/setLevel",
	SamplingCreateMessage:          "sampling/createMessage",
	ElicitationCreate:              "elicitation/create",
	RootsList:                      "roots/list",
	TasksList:                      "tasks/list",
	TasksGet:                       "tasks/get",
	TasksResult:                    "tasks/result",
	TasksCancel:                    "tasks/cancel",
	TasksUpdate:                    "tasks/update",
	ServerDiscover:                 "server/discover",
	SubscriptionsListen:            "subscriptions/listen",
	NotifInitialized:               "notifications/initialized",
	NotifCancelled:                 "notifications/cancelled",
	NotifProgress:                  "notifications/progress",
	NotifMessage:                   "notifications/message",
	NotifToolsListChanged:          "notifications/tools/list_changed",
	NotifPromptsListChanged:        "notifications/prompts/list_changed",
	NotifResourcesListChanged:      "notifications/resources/list_changed",
	NotifResourcesUpdated:          "notifications/resources/updated",
	NotifRootsListChanged:          "notifications/roots/list_changed",
	NotifElicitationComplete:       "notifications/elicitation/complete",
	NotifTasksStatus:               "notifications/tasks/status",
	NotifTasks:                     "notifications/tasks",
	NotifSubscriptionsAcknowledged: "notifications/subscriptions/acknowledged",
}

// String returns the name of m on the wire, and "other" for Other and for what
// is no Method: a set of names small enough for the label of a metric, whatever
// peers send.
func (m Method) String() string {
	if m >= methodCount {
		return methodNames[Other]
	}
	return methodNames[m]
}

// IsListChanged reports whether m is one of the server's three
// notifications/*/list_changed. The client's, for roots, is not.
func (m Method) IsListChanged() bool {
	switch m {
	case NotifToolsListChanged, NotifPromptsListChanged, NotifResourcesListChanged:
		return true
	}
	return false
}

// PerRequest reports whether a client may send m as a request of 2026-07-28. An
// unknown method is for the server to refuse.
func (m Method) PerRequest() bool {
	switch m {
	case Initialize, Ping, LoggingSetLevel, ResourcesSubscribe, ResourcesUnsubscribe, TasksList, TasksResult,
		SamplingCreateMessage, ElicitationCreate, RootsList:
		return false
	}
	return m < NotifInitialized
}
