import type { Connector, ConnectorAction } from '../connector.ts'
import { flagInput, listInput, nameInput, objectInput, recordInput, textInput, usually } from '../schemas.ts'
import { describeSetup, GOOGLE_SIGN_IN } from './google.ts'

const one = { document: nameInput('Document', 'The id of the document, the long part of its address.') }
const DOCUMENT = '/v1/documents/{{ $input.document }}'

/** An action that changes a document by one request, all of it or nothing. */
const change = (
  name: string,
  summary: string,
  [properties, required]: [Record<string, object>, string[]],
  requests: string,
): ConnectorAction => ({
  ...{ name, summary, safety: 'ONCE' },
  input: objectInput({ ...one, ...properties } as Record<string, Record<string, unknown>>, [
    'document',
    ...required,
  ]),
  steps: [
    {
      ...{ name: 'update', method: 'POST', path: `${DOCUMENT}:batchUpdate` },
      body: { requests, writeControl: '{{ $input.writeControl }}' },
    },
  ],
})

const INSERT =
  '{{ [{"insertText": $merge([{"text": $input.text}, $exists($input.index) ? {"location": {"index": $input.index}} : ' +
  '{"endOfSegmentLocation": {"segmentId": ""}}])}] }}'
const REPLACE =
  '{{ [{"replaceAllText": {"replaceText": $input.replacement, "containsText": ' +
  '{"text": $input.text, "matchCase": $input.matchCase}}}] }}'

/** Google's Docs API, version 1: developers.google.com/workspace/docs/api/reference/rest/v1. */
export const GOOGLE_DOCS: Connector = {
  name: 'google-docs',
  title: 'Google Docs',
  summary: 'Texts of documents.',
  version: 1,
  server: 'https://docs.googleapis.com',
  signIn: [...GOOGLE_SIGN_IN],
  setup: describeSetup('Google Docs API', ['https://www.googleapis.com/auth/documents']),
  actions: {
    createDocument: {
      name: 'Create a document',
      summary: 'Makes an empty document at the top of the Drive. In a folder Google Drive makes one.',
      safety: 'ONCE',
      input: objectInput({ title: nameInput('Title', 'What it is called.') }, ['title']),
      steps: [
        { name: 'create', method: 'POST', path: '/v1/documents', body: { title: '{{ $input.title }}' } },
      ],
    },
    getDocument: {
      name: 'Get a document',
      summary: 'Reads a document with all of its parts, as Google describes them.',
      safety: 'REPEATABLE',
      input: objectInput(one, ['document']),
      steps: [{ name: 'get', method: 'GET', path: DOCUMENT }],
    },
    readText: {
      name: 'Read the text',
      summary: 'Reads the text of a document, of its first tab.',
      safety: 'REPEATABLE',
      input: objectInput(
        { ...one, tables: usually(true, flagInput('Tables', 'With the text that stands in tables.')) },
        ['document'],
      ),
      steps: [
        { name: 'get', method: 'GET', path: DOCUMENT },
        {
          name: 'text',
          make: 'docsText',
          of: { document: '{{ $nodes.get }}', tables: '{{ $input.tables }}' },
        },
      ],
      result: '{{ {"documentId": $input.document, "content": $nodes.text} }}',
    },
    insertText: change(
      'Insert a text',
      'Writes a text at the end of a document, or at a place in it.',
      [
        {
          text: nameInput('Text', 'What is written.'),
          index: {
            type: 'integer',
            minimum: 1,
            title: 'Place',
            description: 'The place. The end, unless it is set.',
          },
        },
        ['text'],
      ],
      INSERT,
    ),
    replaceText: change(
      'Replace a text',
      'Writes another text wherever a text stands.',
      [
        {
          text: nameInput('Text', 'What is looked for.'),
          replacement: usually(
            '',
            textInput('Replacement', 'What stands there then. Nothing, unless it is set.'),
          ),
          matchCase: usually(false, flagInput('Capitals', 'Capital letters must be the same.')),
        },
        ['text'],
      ],
      REPLACE,
    ),
    updateDocument: change(
      'Change a document',
      'Makes several changes at once, all or none of them.',
      [
        {
          requests: listInput(
            recordInput('Change', 'A change, as {"insertText": {...}}.'),
            'Changes',
            'The changes, as the Docs API names them, in their order.',
            { minItems: 1 },
          ),
          writeControl: recordInput(
            'Revision',
            'As {"requiredRevisionId": ...}: it is changed only if it has that revision.',
          ),
        },
        ['requests'],
      ],
      '{{ $input.requests }}',
    ),
  },
}
