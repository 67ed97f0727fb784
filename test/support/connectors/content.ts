import type { ConnectorContent } from '../../../db/connectors/connectors.ts'

/** A connector with one action, `getPet`, at an address where nothing listens. */
export const PETS: ConnectorContent = {
  title: 'Pets',
  summary: 'Pets.',
  head: {
    ...{ server: 'http://127.0.0.1:9', signIn: [], source: null },
    ...{ repeatable: [], paging: null, problems: [] },
  },
  actions: {
    getPet: {
      ...{ name: 'Read a pet', summary: 'Reads a pet.', safety: 'REPEATABLE' },
      input: {
        type: 'object',
        properties: { petId: { type: 'integer' } },
        required: ['petId'],
        additionalProperties: false,
      },
      steps: [{ name: 'answer', method: 'GET', path: '/pets/{{ $input.petId }}' }],
    },
  },
}
