import { getOwn } from '../json.ts'
import type { Connector } from './connector.ts'
import { AIRTABLE } from './vendors/airtable.ts'
import { GOOGLE_CALENDAR } from './vendors/calendar.ts'
import { GOOGLE_DOCS } from './vendors/docs.ts'
import { GOOGLE_DRIVE } from './vendors/drive.ts'
import { GITHUB } from './vendors/github.ts'
import { GMAIL } from './vendors/gmail.ts'
import { NOTION } from './vendors/notion.ts'
import { GOOGLE_SHEETS } from './vendors/sheets.ts'

/** The connectors that every team has, by name. A new one is a table in `vendors/`, and a line here. */
export const BUILT_IN: Record<string, Connector> = Object.fromEntries(
  [AIRTABLE, GITHUB, GMAIL, GOOGLE_CALENDAR, GOOGLE_DOCS, GOOGLE_DRIVE, GOOGLE_SHEETS, NOTION].map((one) => [
    one.name,
    one,
  ]),
)

export function findInCatalog(name: string): Connector | undefined {
  return getOwn<Connector>(BUILT_IN, name)
}
