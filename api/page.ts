import { html, raw } from 'hono/html'
import { type JsonSchema, resolve } from './jsonschema.ts'
import { type Document, type Operation, type Reply, resolveReply } from './openapi.ts'

type Html = ReturnType<typeof html>
type Schemas = Record<string, JsonSchema>

const MAX_DEPTH = 4

/** The document as one page of HTML, which needs nothing else: `style` and `script` stand in it as they are. */
export function renderPage(
  document: Document,
  { style, script, address }: { style: string; script: string; address: string },
): string {
  const { info, tags, paths, components } = document
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const of = (tag: string) => operations.filter(({ operation }) => operation.tags[0] === tag)
  const schemas = components.schemas
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<style>${raw(style)}</style>
</head>
<body>
<nav>
  <h1>${info.title} <small>API ${info.version}</small></h1>
  <input id="filter" type="search" placeholder="Filter, e.g. cancel" aria-label="Filter the operations">
  ${tags.map(
    ({ name }) =>
      html`<section><h2>${name}</h2><ul>${of(name).map(
        ({ method, path, operation }) => html`
      <li data-text="${`${method} ${path} ${operation.summary}`.toLowerCase()}">
        <a href="#${operation.operationId}"><b class="${method}">${method}</b> ${operation.summary}</a></li>`,
      )}</ul></section>`,
  )}
  <section><h2>Schemas</h2><ul>${Object.keys(schemas).map(
    (name) => html`<li data-text="${name.toLowerCase()}"><a href="#schema-${name}">${name}</a></li>`,
  )}</ul></section>
</nav>
<main>
  <header>
    ${renderText(info.description)}
    <p>Machine-readable: <a href="/api/openapi.json">openapi.json</a> (OpenAPI ${document.openapi})</p>
  </header>
  ${tags.map(
    ({ name }) =>
      html`<h2 class="tag">${name}</h2>${of(name).map(({ method, path, operation }) =>
        renderOperation(method, path, operation, document, address),
      )}`,
  )}
  <h2 class="tag">Schemas</h2>
  ${Object.entries(schemas).map(
    ([name, schema]) => html`<article id="schema-${name}" class="schema"><h3>${name}</h3>
      ${schema.description ? renderText(String(schema.description)) : ''}
      ${renderFields(schema, schemas, 0)}${renderKinds(schema, schemas)}</article>`,
  )}
</main>
<script>${raw(script)}</script>
</body>
</html>`
  return String(page)
}

function renderOperation(
  method: string,
  path: string,
  operation: Operation,
  document: Document,
  address: string,
): Html {
  const { schemas } = document.components
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation
  const body = requestBody?.content['application/json']
  const replies = Object.entries(responses).map(
    ([status, reply]) => [status, resolveReply(reply, document)] as const,
  )
  const good = replies.filter(([status]) => Number(status) < 400)
  const bad = replies.filter(([status]) => Number(status) >= 400)
  const shown = good[0]?.[1].content?.['application/json']?.example
  return html`<article id="${operationId}">
  <div class="text">
    <h3><a href="#${operationId}">${summary}</a></h3>
    <p class="path"><b class="${method}">${method}</b> <code>${path}</code></p>
    ${renderText(description)}
    ${parameters.length > 0 ? html`<h4>Parameters</h4><dl>${parameters.map((parameter) => renderParameter(parameter))}</dl>` : ''}
    ${body?.schema ? html`<h4>Body</h4>${renderFields(body.schema, schemas, 0)}` : ''}
    ${requestBody && !body ? html`<h4>Body</h4><p>Of any type.</p>` : ''}
    <h4>Answers</h4>
    <dl>${good.map(([status, reply]) => renderReply(status, reply, schemas))}</dl>
    ${
      bad.length === 0
        ? ''
        : html`<details><summary>${bad.map(([status]) => html`<span class="bad">${status}</span> `)}</summary>
      <dl>${bad.map(([status, { description }]) => html`<dt class="bad">${status}</dt><dd>${description}</dd>`)}</dl>
      <p>Each with the body <a href="#schema-Error">Error</a>; 400 with <a href="#schema-InputError">InputError</a>.</p>
    </details>`
    }
  </div>
  <div class="code">
    <h4>Request</h4><pre>${describeCall(method, path, operation, address)}</pre>
    ${shown === undefined ? '' : html`<h4>${good[0]![0]}</h4><pre>${JSON.stringify(shown, null, 2)}</pre>`}
  </div>
</article>`
}

function renderParameter(parameter: JsonSchema): Html {
  const schema = parameter.schema as JsonSchema
  return html`<dt><code>${parameter.name}</code> <i>${parameter.in}${parameter.required ? ', required' : ''}</i></dt>
    <dd>${describeType(schema)}${describeMore(schema)}${explain(parameter)}</dd>`
}

function renderReply(status: string, reply: Reply, schemas: Schemas): Html {
  const [media, content] = Object.entries(reply.content ?? {})[0] ?? []
  const own = Object.entries(reply.headers ?? {}).filter(([, header]) => !(header as JsonSchema).$ref)
  return html`<dt class="good">${status}</dt>
    <dd>${reply.description}. ${content?.schema ? describeType(content.schema) : 'No body'}${
      media && media !== 'application/json' ? html` <i>${media}</i>` : ''
    }
    ${own.map(([name, header]) => html`<br><code>${name}</code>: ${(header as JsonSchema).description}`)}
    ${content?.schema && !isNamed(content.schema) ? renderFields(content.schema, schemas, 0) : ''}</dd>`
}

/** The fields of an object, or of the objects in an array, those inside them included. */
function renderFields(given: JsonSchema, schemas: Schemas, depth: number): Html | string {
  const schema = depth === 0 ? resolve(given, schemas) : unwrap(given)
  if (schema.items)
    return depth === 0 && isNamed(schema.items as JsonSchema)
      ? ''
      : renderFields(schema.items as JsonSchema, schemas, depth)
  const required = new Set((schema.required ?? []) as string[])
  const properties = Object.entries((schema.properties ?? {}) as Schemas)
  if (properties.length === 0 || depth > MAX_DEPTH) return ''
  return html`<dl>${properties.map(
    ([name, field]) => html`<dt><code>${name}</code>${required.has(name) ? html` <i>required</i>` : ''}</dt>
      <dd>${describeType(field)}${describeMore(field)}${explain(field)}
      ${isNamed(field) ? '' : renderFields(field, schemas, depth + 1)}</dd>`,
  )}</dl>`
}

/** What one of several kinds adds to an object. */
function renderKinds(schema: JsonSchema, schemas: Schemas): Html | string {
  if (!Array.isArray(schema.oneOf)) return ''
  return html`${(schema.oneOf as JsonSchema[]).map((given) => {
    const kind = resolve(given, schemas)
    const { type, config } = (kind.properties ?? {}) as Schemas
    return html`<h4><code>${type?.const}</code></h4><p>${kind.description}</p>${config ? renderFields(config, schemas, 1) : ''}`
  })}`
}

/** What a field is where it is not null. */
function unwrap(schema: JsonSchema): JsonSchema {
  const choices = (schema.anyOf ?? []) as JsonSchema[]
  return choices.length === 2 && choices[1]?.type === 'null' ? choices[0]! : schema
}

function isNamed(schema: JsonSchema): boolean {
  return (
    typeof schema.$ref === 'string' || (schema.items !== undefined && isNamed(schema.items as JsonSchema))
  )
}

/** A schema's type in a few words, linked where it has a name. */
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

function explain({ description }: JsonSchema): string {
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

/** A call of the operation as one types it in a shell. */
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

/** Paragraphs with `code` and **strong**. */
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
