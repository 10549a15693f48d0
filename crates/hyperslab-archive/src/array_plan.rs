//! `ArrayPlan`: what reading a selection takes, before anything is read.

use std::sync::OnceLock;

use hyperslab_core::{PlanTotals, ReadPlan, Request};

use crate::whole_array::WholeArray;

/// The chunks, requests and bytes of one read.
pub struct ArrayPlan {
    whole: WholeArray,
    /// One, or one for each group of points.
    plans: Vec<ReadPlan>,
    shape: Vec<u64>,
    /// How many points, if points are read.
    point_count: Option<u64>,
    /// Made when first asked for: that takes as long as all requests.
    totals: OnceLock<PlanTotals>,
}

impl ArrayPlan {
    pub(crate) fn new(whole: WholeArray, plan: ReadPlan) -> Self {
        let (shape, point_count) = (plan.shape().to_vec(), None);
        Self { whole, shape, point_count, plans: vec![plan], totals: OnceLock::new() }
    }

    pub(crate) fn of_points(whole: WholeArray, plans: Vec<ReadPlan>, point_count: u64) -> Self {
        let shape = vec![point_count];
        Self { whole, shape, point_count: Some(point_count), plans, totals: OnceLock::new() }
    }

    /// The shape of the output.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Elements of the output.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// What the read costs. It is calculated once.
    pub fn totals(&self) -> &PlanTotals {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        self.totals.get_or_init(|| match (self.point_count, self.plans.as_slice()) {
            (None, [plan]) => plan.totals(array, policy),
            (count, plans) => PlanTotals::of_points(plans, array, count.unwrap_or(0), policy),
        })
    }

    /// The requests, in the order of files and offsets.
    pub fn requests(&self) -> Vec<Request> {
        let (array, policy) = (self.whole.array(), self.whole.stores().policy());
        let mut requests: Vec<Request> =
            self.plans.iter().flat_map(|plan| plan.requests(array, policy)).collect();
        requests.sort_unstable();
        requests
    }
}
