import type { NodeMapper } from '../mapper.ts'
import { mapAirtable } from './airtable.ts'
import { mapGoogleDrive } from './drive.ts'
import { mapGmail } from './gmail.ts'
import { mapGoogleSheets } from './sheets.ts'

/** Nodes of services that are connectors here. */
export const CONNECTOR_MAPPERS: Record<string, NodeMapper> = {
  airtable: mapAirtable,
  gmail: mapGmail,
  googleDrive: mapGoogleDrive,
  googleSheets: mapGoogleSheets,
}
