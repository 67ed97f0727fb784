import type { NodeMapper } from '../mapper.ts'
import { mapAction, type ServiceReader } from './action.ts'
import { readAirtable } from './airtable.ts'
import { readGoogleCalendar } from './calendar.ts'
import { readGoogleDocs } from './docs.ts'
import { readGoogleDrive } from './drive.ts'
import { readGithub } from './github.ts'
import { readGmail } from './gmail.ts'
import { readNotion } from './notion.ts'
import { readGoogleSheets } from './sheets.ts'

/** n8n's nodes of services that are connectors here. Agents' tools have the same types with `Tool` at the end. */
export const SERVICES: Record<string, ServiceReader> = {
  airtable: readAirtable,
  notion: readNotion,
  github: readGithub,
  gmail: readGmail,
  googleCalendar: readGoogleCalendar,
  googleDocs: readGoogleDocs,
  googleDrive: readGoogleDrive,
  googleSheets: readGoogleSheets,
}

export const CONNECTOR_MAPPERS: Record<string, NodeMapper> = Object.fromEntries(
  Object.entries(SERVICES).map(([type, read]) => [
    type,
    (node, tools) => mapAction(node, tools, read(node, tools)),
  ]),
)
