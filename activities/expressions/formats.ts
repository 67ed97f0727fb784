import type { OpenApiOptions } from '../connectors/openapi/parts.ts'

/** What to read from a page: the text or an attribute, of the first element that is selected or of all. */
export type HtmlPick = { selector: string; attribute?: string; all?: boolean }

/** A field that is picked of a page. `words` writes the text as a person would read it. */
export type PageField = {
  key: string
  selector: string
  take: 'text' | 'words' | 'html' | 'value' | 'attribute'
  attribute?: string
  skip?: string
  list: boolean
}

/** Work for parsers. Only in an evaluator process can their time and memory be bounded. */
export type FormatConversion =
  | { kind: 'xml'; parse: string; order?: boolean }
  | { kind: 'xml'; build: string }
  | { kind: 'html'; text: string }
  | { kind: 'html'; page: string; picks: (readonly [name: string, HtmlPick])[] }
  /** Gives epoch milliseconds, or null if the text is not in the format. */
  | { kind: 'date'; text: string; format: string; zone: string; locale: string }
  /** The fields of a page, picked with jQuery's selectors: each is a text, or a list of them. */
  | { kind: 'html'; document: string; fields: PageField[]; trim: boolean; clean: boolean }
  | { kind: 'html'; markdown: string; options: Record<string, unknown> }
  | { kind: 'html'; toMarkdown: string; options: Record<string, unknown> }
  | { kind: 'xml'; read: string; options: Record<string, unknown> }
  | { kind: 'xml'; write: string; options: Record<string, unknown> }
  /** Whether a regular expression, such as `a+b` or `/a+b/i`, is found in the text. */
  | { kind: 'search'; text: string; pattern: string }
  /** What a value lacks to fit a JSON Schema; both are JSON. Gives a Fit. */
  | { kind: 'schema'; schema: string; value: string }
  /** Where a text, which must be JSON, does not fit a JSON Schema, which is JSON. Gives a TextFit. */
  | { kind: 'schema'; schema: string; text: string }
  /** What an OpenAPI document says of a service. Gives a ReadDocument. */
  | { kind: 'openapi'; openapi: string; options: OpenApiOptions }
