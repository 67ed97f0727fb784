import type { HTTP_METHODS } from '../nodes/fields.ts'

export type ActionSchema = Record<string, unknown>

/** A value whose strings may be expressions in `{{ }}`. */
type Template = unknown

/**
 * What a service offers, as data. The tables in `vendors/` are written by hand, others are made of a document of the
 * service. A version of a connector never changes: workflows name one.
 */
export type Connector = {
  /** What nodes name it by: `google-sheets`. */
  name: string
  /** What people call it: `Google Sheets`. */
  title: string
  summary: string
  version: number
  /** The address that the paths of its steps follow, without a slash at its end. */
  server?: string
  /** How its requests are signed in: the types of credentials that it takes; none for a service that needs no signing in. */
  signIn: readonly string[]
  /** What a person must have and enter there, in words. */
  setup?: string
  actions: Record<string, ConnectorAction>
  /** Lists to choose a value of an input from, by name: the schema of a property names one in `x-options`. */
  options?: Record<string, ConnectorOptions>
}

/**
 * What an action does when it is asked for twice. REPEATABLE: the same, since it only reads, or the service recognises it.
 * ONCE: it may be done twice, so each of its requests that changes something is sent at most once.
 */
type Safety = 'REPEATABLE' | 'ONCE'

export type ConnectorAction = {
  name: string
  summary: string
  /** A JSON Schema of an object. Each property has a `title` and a `description`: forms show them. */
  input: ActionSchema
  output?: ActionSchema
  safety: Safety
  steps: readonly (ConnectorStep | ConnectorMaking)[]
  /** What the node outputs. Without it the answer to the last step. */
  result?: Template
  /** The property of the input that is a list, if the output has one entry for each of its entries, in their order. */
  each?: string
}

/**
 * Something that is worked out on the way, without a request: what later steps send, or what the action outputs. Only the
 * tables in `vendors/` have such steps.
 */
export type ConnectorMaking = {
  name: string
  when?: string
  /** The name of a function in `activities/connectors/makers/`. */
  make: string
  /** What it is given. */
  of: Template
}

/**
 * One request. Its expressions read the action's input as `$input`, the answers to earlier steps as `$nodes.<name>`, their
 * `{status, headers}` as `$args.<name>`, and as `$execution.key` 32 hexadecimal digits that are the same for each attempt.
 * Those of other connectors are made of parameters.
 */
export type ConnectorStep = {
  name: string
  /** The step is left out if the condition does not hold. */
  when?: string
  /** A list, by an expression in {{ }}: the step is taken for each entry, as `$item`, and its answer is a list. Only for reading. */
  over?: Template
  method: (typeof HTTP_METHODS)[number]
  /** Follows the server's address, unless it is a whole one. Values in it are percent-encoded, and must not be empty. */
  path: string
  query?: Record<string, Template>
  headers?: Record<string, Template>
  /** The body, in which keys whose value is null are left out. */
  body?: Template
  /** The property of the input that is the body, or those that its object has. */
  bodyOf?: string | readonly string[]
  bodyType?: 'json' | 'form' | 'text' | 'file' | 'multipart'
  contentType?: string
  /** How the answer is read: JSON where it says so (the default), a text, or a file of the execution. */
  answer?: 'json' | 'text' | 'file'
  /** The name of the file that the answer becomes. */
  fileName?: Template
  /** The type of that file, where the answer's own says something else. */
  fileType?: string
  /** Statuses of 400 and more that are an answer like any other. */
  takes?: readonly number[]
  /**
   * Refusals that say it is done already: 404 of what is deleted, 409 of what is created with an id of ours. They are an
   * answer where an earlier attempt may have sent the request, which is noted before it is sent, and else a failure.
   */
  done?: readonly number[]
  /** Its answer is stored, so that every attempt goes on with the same: for ids that are got before they are used. */
  keep?: true
  /** It may be sent again, though the action as a whole must not be repeated: it sets values, or deletes what has a name. */
  repeatable?: true
  pages?: ConnectorPages
  /** How the values of an input become parts of the request, by the rules of OpenAPI. */
  parameters?: readonly Parameter[]
}

/** How further pages are got. The answer is then the list of all their items. */
export type ConnectorPages = {
  /** Where the condition does not hold, only the first page is read, and the answer is what it is. */
  when?: string
  /** The list in an answer, which the expression reads as `$item`. Without it the answer is the list. */
  items?: string
  /** What leads to the next page, in an answer; nothing at the last one. `link`: the address in its header Link. */
  next: string | 'link'
  /** The parameter of the query, or the key of the body, that takes it. Without it, it is an address of the same server. */
  into?: { query: string } | { body: string }
  /** How many items are wanted: a number, by an expression. Without it, or null, all. */
  limit?: string
}

/** A parameter of OpenAPI 3.1, and the property of the input that has its value. */
export type Parameter = {
  property: string
  name: string
  in: 'path' | 'query' | 'header' | 'cookie'
  style: 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject'
  explode: boolean
  /** The value is sent as JSON. */
  json?: true
}

/** A list to choose from: what its steps answer, as [{value, label}]. */
export type ConnectorOptions = {
  steps: readonly ConnectorStep[]
  list: string
  needs?: readonly string[]
}

/** Whether a request with this method changes nothing. */
export function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

export function isMaking(step: ConnectorStep | ConnectorMaking): step is ConnectorMaking {
  return 'make' in step
}
