import type { Connector } from '../connector.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './google.ts'
import { BOOK_ACTIONS } from './sheetbooks.ts'
import { CELL_ACTIONS } from './sheetcells.ts'
import { BOOK } from './sheetparts.ts'
import { ROW_ACTIONS } from './sheetrows.ts'

/** Google's Sheets API, version 4: developers.google.com/workspace/sheets/api/reference/rest. */
export const GOOGLE_SHEETS: Connector = {
  name: 'google-sheets',
  title: 'Google Sheets',
  summary: 'Rows, cells and sheets of spreadsheets.',
  version: 1,
  server: 'https://sheets.googleapis.com',
  signIn: [...GOOGLE_SIGN_IN],
  setup: describeSetup('Google Sheets API', ['https://www.googleapis.com/auth/spreadsheets']),
  options: {
    spreadsheets: {
      steps: [
        {
          name: 'files',
          method: 'GET',
          path: 'https://www.googleapis.com/drive/v3/files',
          query: {
            q: "mimeType='application/vnd.google-apps.spreadsheet' and trashed=false",
            fields: 'files(id,name)',
            pageSize: '1000',
            orderBy: 'modifiedTime desc',
          },
        },
      ],
      list: '$nodes.files.files.{"value": id, "label": name}',
    },
    sheets: {
      needs: ['spreadsheet'],
      steps: [{ name: 'book', method: 'GET', path: BOOK, query: { fields: 'sheets.properties' } }],
      list: '$nodes.book.sheets.properties.{"value": title, "label": title}',
    },
  },
  actions: { ...ROW_ACTIONS, ...CELL_ACTIONS, ...BOOK_ACTIONS },
}
