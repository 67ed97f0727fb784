import { getOwn } from '../json.ts'
import type { Connector } from './connector.ts'
import { AIRTABLE } from './vendors/airtable.ts'
import { GOOGLE_SHEETS } from './vendors/google/sheets.ts'
import { NOTION } from './vendors/notion.ts'

/** The connectors that every team has, by name. A new one is a table in `vendors/`, and a line here. */
export const BUILT_IN: Record<string, Connector> = Object.fromEntries(
  [AIRTABLE, NOTION, GOOGLE_SHEETS].map((one) => [one.name, one]),
)

export function findInCatalog(name: string): Connector | undefined {
  return getOwn<Connector>(BUILT_IN, name)
}
