import type { NodeMapper } from '../mapper.ts'
import { mapAirtable } from './airtable.ts'
import { mapGoogleDrive } from './drive.ts'
import { mapGmail } from './gmail.ts'
import { mapNotion } from './notion.ts'
import { mapGoogleSheets } from './sheets.ts'

/** Nodes of services that are connectors here. */
export const CONNECTOR_MAPPERS: Record<string, NodeMapper> = {
  airtable: mapAirtable,
  notion: mapNotion,
  gmail: mapGmail,
  googleDrive: mapGoogleDrive,
  googleSheets: mapGoogleSheets,
}
