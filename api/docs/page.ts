import { html, raw } from 'hono/html'
import { type JsonSchema, resolveSchema } from './jsonschema.ts'
import { type ApiDocument, type DescribedResponse, type Operation, resolveResponse } from './openapi.ts'

type Html = ReturnType<typeof html>
type Schemas = Record<string, JsonSchema>
type OperationsByTag = Map<string, { path: string; method: string; operation: Operation }[]>

const MAX_DEPTH = 4

/** Renders the document as one self-contained HTML page. `style` and `script` become part of it. */
export function renderPage(
  document: ApiDocument,
  { style, script, address }: { style: string; script: string; address: string },
): string {
  const { info, paths } = document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const byTag = Map.groupBy(operations, ({ operation }) => operation.tags[0]!)
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<style>${raw(style)}</style>
</head>
<body>
${renderNavigation(document, byTag)}
${renderMain(document, byTag, address)}
<script>${raw(script)}</script>
</body>
</html>`
  return String(page)
}

function renderNavigation({ info, tags, components }: ApiDocument, byTag: OperationsByTag): Html {
  return html`<nav>
  <h1>${info.title} <small>API ${info.version}</small></h1>
  <input id="filter" type="search" placeholder="Filter, e.g. cancel" aria-label="Filter the operations">
  ${tags.map(
    ({ name }) =>
      html`<section><h2>${name}</h2><ul>${byTag.get(name)!.map(
        ({ method, path, operation }) => html`
      <li data-text="${`${method} ${path} ${operation.summary}`.toLowerCase()}">
        <a href="#${operation.operationId}"><b class="${method}">${method}</b> ${operation.summary}</a></li>`,
      )}</ul></section>`,
  )}
  <section><h2>Schemas</h2><ul>${Object.keys(components.schemas).map(
    (name) => html`<li data-text="${name.toLowerCase()}"><a href="#schema-${name}">${name}</a></li>`,
  )}</ul></section>
</nav>`
}

function renderMain(document: ApiDocument, byTag: OperationsByTag, address: string): Html {
  const { schemas } = document.components
  return html`<main>
  <header>
    ${renderText(document.info.description)}
    <p>How to build workflows and run the service: <a href="/api/docs/guide">the guide</a>.
    Machine-readable: <a href="/api/openapi.json">openapi.json</a> (OpenAPI ${document.openapi})</p>
  </header>
  ${document.tags.map(
    ({ name }) =>
      html`<h2 class="tag">${name}</h2>${byTag
        .get(name)!
        .map(({ method, path, operation }) => renderOperation(method, path, operation, document, address))}`,
  )}
  <h2 class="tag">Schemas</h2>
  ${Object.entries(schemas).map(
    ([name, schema]) => html`<article id="schema-${name}" class="schema"><h3>${name}</h3>
      ${schema.description ? renderText(String(schema.description)) : ''}
      ${renderFields(schema, schemas, 0)}${renderKinds(schema, schemas)}</article>`,
  )}
</main>`
}

function renderOperation(
  method: string,
  path: string,
  operation: Operation,
  document: ApiDocument,
  address: string,
): Html {
  const { schemas } = document.components
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation
  const body = requestBody?.content['application/json']
  const resolved = Object.entries(responses).map(
    ([status, response]) => [status, resolveResponse(response, document)] as const,
  )
  const good = resolved.filter(([status]) => Number(status) < 400)
  const bad = resolved.filter(([status]) => Number(status) >= 400)
  const example = good[0]?.[1].content?.['application/json']?.example
  return html`<article id="${operationId}">
  <div class="text">
    <h3><a href="#${operationId}">${summary}</a></h3>
    <p class="path"><b class="${method}">${method}</b> <code>${path}</code></p>
    ${renderText(description)}
    ${parameters.length > 0 ? html`<h4>Parameters</h4><dl>${parameters.map((parameter) => renderParameter(parameter))}</dl>` : ''}
    ${requestBody ? html`<h4>Body</h4>` : ''}
    ${requestBody?.description ? html`<p>${requestBody.description}</p>` : body?.schema ? renderFields(body.schema, schemas, 0) : ''}
    <h4>Responses</h4>
    <dl>${good.map(([status, response]) => renderResponse(status, response, schemas))}</dl>
    ${
      bad.length === 0
        ? ''
        : html`<details><summary>${bad.map(([status]) => html`<span class="bad">${status}</span> `)}</summary>
      <dl>${bad.map(([status, { description }]) => html`<dt class="bad">${status}</dt><dd>${description}</dd>`)}</dl>
      <p>The body is an <a href="#schema-Error">Error</a>, and for 400 an <a href="#schema-InputError">InputError</a>.</p>
    </details>`
    }
  </div>
  <div class="code">
    <h4>Request</h4><pre>${describeCall(method, path, operation, address)}</pre>
    ${example === undefined ? '' : html`<h4>${good[0]![0]}</h4><pre>${JSON.stringify(example, null, 2)}</pre>`}
  </div>
</article>`
}

function renderParameter(parameter: JsonSchema): Html {
  const schema = parameter.schema as JsonSchema
  return html`<dt><code>${parameter.name}</code> <i>${parameter.in}${parameter.required ? ', required' : ''}</i></dt>
    <dd>${describeType(schema)}${describeMore(schema)}${appendDescription(parameter)}</dd>`
}

function renderResponse(status: string, response: DescribedResponse, schemas: Schemas): Html {
  const [media, content] = Object.entries(response.content ?? {})[0] ?? []
  const own = Object.entries(response.headers ?? {}).filter(([, header]) => !(header as JsonSchema).$ref)
  return html`<dt class="good">${status}</dt>
    <dd>${response.description}. ${content?.schema ? describeType(content.schema) : 'No body'}${
      media && media !== 'application/json' ? html` <i>${media}</i>` : ''
    }
    ${own.map(([name, header]) => html`<br><code>${name}</code>: ${(header as JsonSchema).description}`)}
    ${content?.schema && !isNamed(content.schema) ? renderFields(content.schema, schemas, 0) : ''}</dd>`
}

/** Renders the fields of an object, or of the objects in an array, down to `MAX_DEPTH` levels. */
function renderFields(given: JsonSchema, schemas: Schemas, depth: number): Html | string {
  const schema = depth === 0 ? resolveSchema(given, schemas) : unwrap(given)
  if (schema.items)
    return depth === 0 && isNamed(schema.items as JsonSchema)
      ? ''
      : renderFields(schema.items as JsonSchema, schemas, depth)
  const required = new Set((schema.required ?? []) as string[])
  const properties = Object.entries((schema.properties ?? {}) as Schemas)
  if (properties.length === 0 || depth > MAX_DEPTH) return ''
  return html`<dl>${properties.map(
    ([name, field]) => html`<dt><code>${name}</code>${required.has(name) ? html` <i>required</i>` : ''}</dt>
      <dd>${describeType(field)}${describeMore(field)}${appendDescription(field)}
      ${isNamed(field) ? '' : renderFields(field, schemas, depth + 1)}</dd>`,
  )}</dl>`
}

/** Renders the variants of an object (`oneOf`): the `type`, description and `config` fields of each. */
function renderKinds(schema: JsonSchema, schemas: Schemas): Html | string {
  if (!Array.isArray(schema.oneOf)) return ''
  return html`${(schema.oneOf as JsonSchema[]).map((given) => {
    const kind = resolveSchema(given, schemas)
    const { type, config } = (kind.properties ?? {}) as Schemas
    return html`<h4><code>${type?.const}</code></h4><p>${kind.description}</p>${config ? renderFields(config, schemas, 1) : ''}`
  })}`
}

/** The schema of a nullable field without null, or the schema itself if it is not nullable. */
function unwrap(schema: JsonSchema): JsonSchema {
  const choices = (schema.anyOf ?? []) as JsonSchema[]
  return choices.length === 2 && choices[1]?.type === 'null' ? choices[0]! : schema
}

function isNamed(schema: JsonSchema): boolean {
  return (
    typeof schema.$ref === 'string' || (schema.items !== undefined && isNamed(schema.items as JsonSchema))
  )
}

/** Renders a schema's type in a few words, as a link if it is a component. */
function describeType(schema: JsonSchema): Html {
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').pop()!
    return html`<a href="#schema-${name}">${name}</a>`
  }
  const choices = (schema.anyOf ?? (schema.properties ? undefined : schema.oneOf)) as JsonSchema[] | undefined
  if (choices)
    return html`${choices.map((choice, at) => html`${at > 0 ? ' or ' : ''}${describeType(choice)}`)}`
  if ('const' in schema) return html`<code>${JSON.stringify(schema.const)}</code>`
  if (Array.isArray(schema.enum)) {
    return html`${schema.enum.map((value, at) => html`${at > 0 ? ' | ' : ''}<code>${value}</code>`)}`
  }
  if (schema.type === 'array') return html`array of ${describeItems(schema.items as JsonSchema | undefined)}`
  return html`${schema.type ?? 'anything'}${schema.format ? ` (${schema.format})` : ''}`
}

function describeItems(items: JsonSchema | undefined): Html | string {
  if (!items) return 'anything'
  return items.type === 'object' ? 'objects' : describeType(items)
}

function appendDescription({ description }: JsonSchema): string {
  return description ? `. ${description}` : ''
}

function describeMore(given: JsonSchema): string {
  const schema: JsonSchema = { ...unwrap(given), default: given.default }
  const { minimum, maximum, minLength, maxLength, maxItems } = schema
  const parts: string[] = []
  if (minimum !== undefined || maximum !== undefined) parts.push(`${minimum ?? ''} to ${maximum ?? ''}`)
  if (maxLength !== undefined) parts.push(`${minLength ?? 0} to ${maxLength} characters`)
  if (maxItems !== undefined) parts.push(`at most ${maxItems}`)
  if (schema.default !== undefined && schema.default !== null)
    parts.push(`default ${JSON.stringify(schema.default)}`)
  return parts.length > 0 ? `, ${parts.join(', ')}` : ''
}

/** The `curl` command that calls the operation. */
function describeCall(method: string, path: string, operation: Operation, address: string): string {
  const needed = (operation.parameters ?? []).filter(
    ({ in: where, required }) => where === 'query' && required,
  )
  const query = needed.map(({ name }) => `${name}=$${String(name).toUpperCase()}`).join('&')
  const url = `${address}${path.replace(/\{(\w+)\}/g, (_, name) => `$${name.toUpperCase()}`)}${query ? `?${query}` : ''}`
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"${url}"`]
  if (operation.security.some((way) => 'sdkToken' in way))
    lines.push(`-H "Authorization: Bearer $PERDURE_TOKEN"`)
  else if (operation.security.length > 0) lines.push(`-b "$PERDURE_COOKIE"`)
  const example = operation.requestBody?.content['application/json']?.example
  if (example !== undefined) {
    lines.push(
      `-H 'Content-Type: application/json'`,
      `-d '${JSON.stringify(example, null, 2).replaceAll("'", "'\\''")}'`,
    )
  }
  return lines.join(' \\\n  ')
}

/** Renders paragraphs with `code` and **strong** text. */
function renderText(text: string): Html {
  const inline = (paragraph: string) =>
    paragraph
      .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
      .map((part) =>
        part.startsWith('`')
          ? html`<code>${part.slice(1, -1)}</code>`
          : part.startsWith('**')
            ? html`<strong>${part.slice(2, -2)}</strong>`
            : part,
      )
  return html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`
}
